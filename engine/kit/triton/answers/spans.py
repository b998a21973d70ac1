"""Spans: the part of a context that answers a question."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from engine.kit.triton import served
from engine.kit.triton.answers import scores
from engine.kit.triton.text import DOC_STRIDE, WINDOW_ROWS
from engine.runtimes.triton_tensors import TEXT
from engine.tasks import answer
from engine.tasks.answer import Answer, AnswerTensor

if TYPE_CHECKING:
    from engine.kit.triton.config import Signature
    from engine.kit.triton.text import ServedTokenizer

_LONGEST = 15
"""Upper limit of an answer's tokens: the default of `max_answer_len` in transformers' question-answering pipeline."""
_NO_ANSWER, _LENGTH = "handle_impossible_answer", "max_answer_len"


def make(signature: Signature, checkpoint: Path, text: ServedTokenizer) -> Answer:
    """Return the postprocessing that turns `start_logits` and `end_logits`, each [rows, tokens], into an answer.

    The options are `max_answer_len`, `handle_impossible_answer` and `doc_stride`. With `doc_stride`, rows are windows,
    and clients do not get the logits. Raises Unfit for a model without `start_logits` or `end_logits`.
    """
    for name in ("start_logits", "end_logits"):
        answer.output(signature, name, axes=2, alone=False)
        scores.refuse_activated(checkpoint, name, axes=2)
    gives = (
        AnswerTensor("answer", "TYPE_STRING", (1,)),
        AnswerTensor("score", "TYPE_FP32", (1,)),
        AnswerTensor("start", "TYPE_INT64", (1,)),
        AnswerTensor("end", "TYPE_INT64", (1,)),
    )
    options = text.options
    outputs: tuple[str, ...] = tuple(each.name for each in gives)
    takes: tuple[str, ...] = ("start_logits", "end_logits", "offsets", TEXT)
    settings = {"longest": options.get(_LENGTH, _LONGEST)}
    if options.get(_NO_ANSWER):
        takes, settings = (*takes, "attention_mask"), {**settings, "no_answer": True}
    if DOC_STRIDE in options:
        takes = (*takes, WINDOW_ROWS)
    else:
        outputs = (*outputs, "start_logits", "end_logits")
    return Answer(served.ANSWER, takes, gives, outputs, settings)
