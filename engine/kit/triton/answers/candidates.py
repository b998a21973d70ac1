"""Candidates: how well each of the texts of a row describes the image of the row, the best first."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.triton import served
from engine.runtimes.triton_tensors import TEXT
from engine.tasks import answer
from engine.tasks.answer import Answer, AnswerTensor

if TYPE_CHECKING:
    from engine.kit.triton.config import Signature
    from engine.kit.triton.text import ServedTokenizer

_APART = "siglip"
"""The part of `model_type` by which transformers' zero-shot pipeline knows models that judge each text by itself."""


def make(signature: Signature, checkpoint: Path, _text: ServedTokenizer | None) -> Answer:
    """Return the postprocessing that turns `logits_per_image` [rows, texts] into the texts with their scores.

    The scores of a row are the softmax of its logits, or for SigLIP the sigmoid of each logit. Raises Unfit for a model
    without `logits_per_image`.
    """
    _, names = answer.output(signature, "logits_per_image", axes=2)
    score = "sigmoid" if _APART in str(checkpoints.config(checkpoint).get("model_type")) else "softmax"
    gives = (AnswerTensor("labels", "TYPE_STRING", (-1,)), AnswerTensor("scores", "TYPE_FP32", (-1,)))
    outputs = ("logits_per_image", "labels", "scores")
    return Answer(
        served.CLASSIFY, ("logits_per_image", TEXT), gives, outputs,
        {"scores": score, "logits": "logits_per_image"}, names,
    )  # fmt: skip
