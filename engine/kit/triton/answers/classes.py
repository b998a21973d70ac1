"""Classes: labels with scores for each row, best first."""

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


def make(signature: Signature, checkpoint: Path, _: ServedTokenizer | None) -> Answer:
    """Return what makes labels of logits [rows, classes]. Raises Unfit."""
    logits, names = answer.output(signature, "logits", axes=2)
    classes = answer.extent(logits)
    settings = {"labels": labels.names(checkpoint, classes), "scores": labels.score(checkpoint, classes)}
    gives = (AnswerTensor("labels", "TYPE_STRING", (classes,)), AnswerTensor("scores", "TYPE_FP32", (classes,)))
    return Answer(served.CLASSIFY, ("logits",), gives, ("logits", "labels", "scores"), settings, names)
