"""Tags: a label with a score for each token."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from engine.kit.checkpoints import labels
from engine.kit.triton import served
from engine.tasks import answer
from engine.tasks.answer import Answer, AnswerTensor

if TYPE_CHECKING:
    from engine.kit.triton.config import Signature
    from engine.kit.triton.text import ServedTokenizer


def make(signature: Signature, checkpoint: Path, text: ServedTokenizer) -> Answer:
    """Return the postprocessing that turns logits [rows, tokens, classes] into a label with a score for each token.

    Raises Unfit for a model without logits of three axes.
    """
    logits, names = answer.output(signature, "logits", axes=3)
    settings = {"labels": labels.names(checkpoint, answer.extent(logits))}
    gives = (
        AnswerTensor("labels", "TYPE_STRING", (-1,)),
        AnswerTensor("scores", "TYPE_FP32", (-1,)),
        AnswerTensor("tokens", "TYPE_STRING", (-1,)),
    )
    backend = text.tokenizer.backend
    tokens = [backend.id_to_token(number) or "" for number in range(answer.vocabulary(backend))]
    return Answer(
        served.TAG, ("logits", "input_ids", "attention_mask"), gives,
        ("logits", "labels", "scores", "tokens", "offsets"), settings, names,
        {"vocabulary.json": answer.as_json(tokens)},
    )  # fmt: skip
