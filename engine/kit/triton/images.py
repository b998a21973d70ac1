"""Images: the python model that turns image files into tensors, before a model of timm."""

from __future__ import annotations

from pathlib import Path

from engine.kit import images
from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.images import settings
from engine.kit.triton import parts, served
from engine.kit.triton.config import Config, Signature
from engine.kit.triton.parts import Part
from engine.kit.triton.serving import Serving
from engine.runtimes.triton_tensors import IMAGE
from engine.tasks import AnswerTensor

_FILE = AnswerTensor(IMAGE, "TYPE_STRING", (1,))
"""The input of the ensemble: the bytes of an image file, in any format that Pillow reads."""


def part(name: str, model: Config, signature: Signature, serving: Serving, checkpoint: Path) -> Part | None:
    """Return the python model that turns image files into the input of `model`; None where `model` takes no images.

    Raises StepError as `settings.of_checkpoint` does.
    """
    if serving.images is None or len(signature.inputs) > 1 or checkpoints.kind(checkpoint) != "timm":
        return None
    preprocess = {"layout": serving.images.layout, **serving.preprocess}
    prepared = settings.of_checkpoint(checkpoint, signature.inputs, preprocess)
    if prepared is None:
        return None
    return parts.python(
        name, model, takes=[_FILE], gives=parts.tensors(model.input, model), work=served.IMAGE, settings=prepared,
        files={images.PREPARATION: images.code()}, needs=("pillow",),
    )  # fmt: skip
