"""Mask: the class of each pixel of an image, as a PNG in the size of the image."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from engine.kit.checkpoints import labels
from engine.kit.triton import served
from engine.kit.triton.images import SIZES
from engine.tasks import answer
from engine.tasks.answer import Answer, AnswerTensor, Unfit

if TYPE_CHECKING:
    from engine.kit.triton.config import Signature
    from engine.kit.triton.text import ServedTokenizer


def make(signature: Signature, checkpoint: Path, _: ServedTokenizer | None) -> Answer:
    """Return the postprocessing that turns logits [rows, classes, height, width] into a mask.

    Raises Unfit for a model without logits of four axes.
    """
    logits, names = answer.output(signature, "logits", axes=4)
    classes = logits.shape[1]
    if not isinstance(classes, int):
        raise Unfit(f"how many classes it tells apart is not known: {logits.name} has {classes} of them")
    gives = (AnswerTensor("mask", "TYPE_STRING", (1,)), AnswerTensor("labels", "TYPE_STRING", (-1,)))
    settings = {"labels": labels.names(checkpoint, classes)}
    return Answer(served.MASK, ("logits", SIZES), gives, ("mask", "labels"), settings, names, needs=("pillow",))
