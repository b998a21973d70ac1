"""Images: the python model that turns image files into tensors, before a model that takes images."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
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
CHECKED_TEXTS = "checked_texts"
"""The texts of a row whose image is one, again: the tokenizer waits for them.

Where one of two models of an ensemble that run at a time refuses its input, Triton 2.51 frees the request while the
other still reads it: that one then reads garbage, and refuses requests of other clients or waits forever.
"""
_FILE = AnswerTensor(IMAGE, "TYPE_STRING", (1,))
"""The input of the ensemble: the bytes of an image file, in any format that Pillow reads."""


def differ(serving: Serving, signature: Signature) -> bool:
    """Tell whether the images of different files may become tensors of different sizes."""
    shapes = [spec.shape for spec in signature.inputs.values() if len(spec.shape) == 4]  # noqa: PLR2004
    return serving.images is not None and any(isinstance(size, str) for shape in shapes for size in shape[1:])


def part(
    name: str, model: Config, signature: Signature, serving: Serving, checkpoint: Path, *,
    also: Collection[str], texts: Sequence[AnswerTensor],
) -> Part | None:  # fmt: skip
    """Return the python model that turns image files into inputs of `model`, and into the sizes where `also` has them.

    It hands on `texts`, the input of a tokenizer, or [] for a model of images alone.
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
    gives += [AnswerTensor(SIZES, "TYPE_INT64", (2,))] if sizes else []
    gives += [replace(each, name=CHECKED_TEXTS) for each in texts]
    return parts.python(
        name, model, takes=[_FILE, *texts], gives=gives,
        work=served.IMAGE, settings=prepared, files={"preparation.py": Path(preparation.__file__).read_bytes()},
        needs=("pillow",),
    )  # fmt: skip
