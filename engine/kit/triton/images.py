"""Images: the python model that turns image files into tensors, before a model that takes images."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from engine.kit.images import preparation, settings
from engine.kit.triton import parts, served
from engine.kit.triton.config import Config, Signature
from engine.kit.triton.parts import Part
from engine.kit.triton.serving import Serving
from engine.runtimes.triton_tensors import IMAGE
from engine.tasks import AnswerTensor

SIZES = "image_sizes"
"""The output with the height and the width of each upright image file, for answers in its pixels."""
_AXES = 4
"""The axes of images: rows, channels, height and width."""
_FILE = AnswerTensor(IMAGE, "TYPE_STRING", (1,))
"""The input of the ensemble: the bytes of an image file, in any format that Pillow reads."""


def differ(serving: Serving, signature: Signature) -> bool:
    """Tell whether the images of different files may become tensors of different sizes."""
    shapes = [spec.shape for spec in signature.inputs.values() if len(spec.shape) == _AXES]
    return serving.images is not None and any(isinstance(size, str) for shape in shapes for size in shape[1:])


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
        work=served.IMAGE, settings=prepared, needs=("pillow",),
        files={"preparation.py": Path(preparation.__file__).read_bytes()},
    )  # fmt: skip
