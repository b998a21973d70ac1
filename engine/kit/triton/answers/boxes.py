"""Boxes: the objects in an image, each with a label, a score and a box in pixels."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import FieldError
from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.checkpoints import labels
from engine.kit.triton import served
from engine.kit.triton.images import SIZES
from engine.tasks import answer
from engine.tasks.answer import Answer, AnswerTensor, Unfit

if TYPE_CHECKING:
    from engine.kit.triton.config import Signature
    from engine.kit.triton.text import ServedTokenizer

_THRESHOLD = 0.5
"""The score that an object has to exceed: the default in transformers' object-detection pipeline."""
_SOFTMAX: Mapping[str, Any] = {"scores": "softmax"}
_SIGMOID: Mapping[str, Any] = {"scores": "sigmoid"}
_BEST_100: Mapping[str, Any] = {"scores": "sigmoid", "most": 100}
_WAYS: Mapping[Any, Mapping[str, Any]] = {
    **dict.fromkeys(("detr", "table-transformer", "yolos"), _SOFTMAX),
    **dict.fromkeys(("conditional_detr", "dab-detr", "deformable_detr", "lw_detr"), _BEST_100),
    **dict.fromkeys(("d_fine", "deimv2", "rt_detr", "rt_detr_v2"), _SIGMOID),
}
"""The `model_type` of a detector -> how its image processor's `post_process_object_detection` finds objects."""


def make(signature: Signature, checkpoint: Path, _: ServedTokenizer | None) -> Answer:
    """Return the postprocessing that turns `logits` and `pred_boxes` of queries into objects.

    The option `threshold` of the recipe takes the place of the setting. Raises Unfit for a model without these outputs,
    and for one of an unknown kind.
    """
    if checkpoints.kind(checkpoint) == "onnx":
        what = f"no task says what the outputs of your own detector mean: {', '.join(signature.outputs)}"
        hint = "leave task out, and say postprocess: {boxes: {layout: yolov8}}, or another layout (docs/own-model.md)"
        raise FieldError(what, ("model", "task"), hint=hint)
    logits, _names = answer.output(signature, "logits", axes=3, alone=False)
    answer.output(signature, "pred_boxes", axes=3, alone=False)
    kind = checkpoints.config(checkpoint).get("model_type")
    if kind not in _WAYS:
        raise Unfit(f"how a model of the type {kind} finds objects is not known, but that of {', '.join(_WAYS)}")
    classes = answer.extent(logits) - (_WAYS[kind] is _SOFTMAX)  # the last one means none
    settings = {"labels": labels.names(checkpoint, classes), "threshold": _THRESHOLD, **_WAYS[kind]}
    kinds = {"labels": ("TYPE_STRING", (-1,)), "scores": ("TYPE_FP32", (-1,)), "boxes": ("TYPE_FP32", (-1, 4))}
    gives = tuple(AnswerTensor(name, *each) for name, each in kinds.items())
    return Answer(served.BOXES, ("logits", "pred_boxes", SIZES), gives, tuple(kinds), settings)
