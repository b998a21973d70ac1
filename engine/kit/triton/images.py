"""Images: the python model that turns image files into tensors, before a model that takes images."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from engine.kit import images
from engine.kit.images import settings
from engine.kit.triton import parts, served
from engine.kit.triton.config import Config, Signature
from engine.kit.triton.parts import Part
from engine.kit.triton.serving import Serving
from engine.runtimes.triton_tensors import IMAGE
from engine.tasks import AnswerTensor

MASK = "pixel_mask"
"""The input of a model that takes images of different sizes in one batch: 1 for a pixel, 0 for padding."""
SIZES = "image_sizes"
"""The output with the height and the width of each upright image file, for answers in its pixels."""
_FILE = AnswerTensor(IMAGE, "TYPE_STRING", (1,))
"""The input of the ensemble: the bytes of an image file, in any format that Pillow reads."""


def part(
    name: str, model: Config, signature: Signature, serving: Serving, checkpoint: Path, *, also: Collection[str]
) -> Part | None:
    """Return the python model that turns image files into inputs of `model`, and into the sizes where `also` has them.

    Returns None where `model` takes no images, or where nothing says how files become its images. Raises StepError as
    `settings.of_checkpoint` does.
    """
    if serving.images is None:
        return None
    sizes = SIZES in also
    prepared = settings.of_checkpoint(checkpoint, signature.inputs, serving.preprocess, sizes=sizes)
    if prepared is None:
        return None
    own = (prepared["output"], prepared["mask"])
    gives = [tensor for tensor in parts.tensors(model.input, model) if tensor.name in own]
    return parts.python(
        name, model, takes=[_FILE], gives=[*gives, *([AnswerTensor(SIZES, "TYPE_INT64", (2,))] if sizes else [])],
        work=served.IMAGE, settings=prepared, files={images.PREPARATION: images.code()}, needs=("pillow",),
    )  # fmt: skip
