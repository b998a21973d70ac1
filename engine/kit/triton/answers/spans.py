"""Spans: the part of a context that answers a question."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from engine.kit.triton import served
from engine.runtimes.triton_tensors import TEXT
from engine.tasks import answer
from engine.tasks.answer import Answer, AnswerTensor

if TYPE_CHECKING:
    from engine.kit.triton.config import Signature
    from engine.kit.triton.text import ServedTokenizer

_LONGEST = 15
"""Upper limit of an answer's tokens: the default of `max_answer_len` in transformers' question-answering pipeline."""


def make(signature: Signature, _: Path, __: ServedTokenizer) -> Answer:
    """Return the postprocessing that turns `start_logits` and `end_logits`, each [rows, tokens], into an answer.

    Raises Unfit for a model without `start_logits` or `end_logits`.
    """
    for name in ("start_logits", "end_logits"):
        answer.output(signature, name, axes=2, alone=False)
    gives = (
        AnswerTensor("answer", "TYPE_STRING", (1,)),
        AnswerTensor("score", "TYPE_FP32", (1,)),
        AnswerTensor("start", "TYPE_INT64", (1,)),
        AnswerTensor("end", "TYPE_INT64", (1,)),
    )
    outputs = ("answer", "score", "start", "end", "start_logits", "end_logits")
    takes = ("start_logits", "end_logits", "offsets", TEXT)
    return Answer(served.ANSWER, takes, gives, outputs, {"longest": _LONGEST})
