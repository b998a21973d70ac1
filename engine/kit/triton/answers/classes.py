"""Classes: the labels of each row with their scores, the best first."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from engine.kit.checkpoints import labels
from engine.kit.triton import served
from engine.kit.triton.answers import scores
from engine.tasks import answer
from engine.tasks.answer import Answer, AnswerTensor

if TYPE_CHECKING:
    from engine.kit.triton.config import Signature
    from engine.kit.triton.text import ServedTokenizer


def make(signature: Signature, checkpoint: Path, _: ServedTokenizer | None) -> Answer:
    """Return the postprocessing that turns logits [rows, classes] into labels with scores.

    Raises Unfit for a model without logits of two axes. An ONNX file may end in the activation that makes the scores.
    """
    logits, names = answer.output(signature, "logits", axes=2)
    classes = answer.extent(logits)
    score = scores.of_onnx(checkpoint, logits.name, axes=2) or labels.score(checkpoint, classes)
    settings = {"labels": labels.names(checkpoint, classes), "scores": score}
    gives = (AnswerTensor("labels", "TYPE_STRING", (classes,)), AnswerTensor("scores", "TYPE_FP32", (classes,)))
    return Answer(served.CLASSIFY, ("logits",), gives, ("logits", "labels", "scores"), settings, names)
