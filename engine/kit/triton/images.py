"""Images: the python model that turns image files into tensors, before a model of timm."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.errors import StepError
from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.triton import parts, served
from engine.kit.triton.config import Config, Signature
from engine.kit.triton.parts import Part
from engine.kit.triton.serving import Serving
from engine.runtimes.triton_tensors import IMAGE
from engine.tasks import AnswerTensor

SIZES = "image_sizes"
"""The output with the height and the width of each upright image file, [rows, 2]."""
_FILE = AnswerTensor(IMAGE, "TYPE_STRING", (1,))
"""The input of the ensemble: the bytes of an image file, in any format that Pillow reads."""
_MODES = {1: "L", 3: "RGB"}
_CROPS = ("center", "squash", "border")
_INTERPOLATIONS = ("nearest", "bilinear", "bicubic", "box", "hamming", "lanczos")
_USUAL: Mapping[str, Any] = {
    "crop_pct": 0.875,
    "crop_mode": "center",
    "interpolation": "bicubic",
    "mean": (0.485, 0.456, 0.406),
    "std": (0.229, 0.224, 0.225),
}
"""timm's defaults for settings that a model's config lacks (`timm/data/constants.py`, `resolve_data_config`)."""


def part(name: str, model: Config, signature: Signature, serving: Serving, checkpoint: Path) -> Part | None:
    """Return the python model that turns image files into the input of `model`; None where `model` takes no images."""
    images = serving.images
    pixels = signature.inputs.get(checkpoints.IMAGES)
    if images is None or pixels is None or len(signature.inputs) > 1 or checkpoints.kind(checkpoint) != "timm":
        return None
    sizes = [each for each in pixels.shape[1:] if isinstance(each, int)]
    last = images.layout == "NHWC"
    channels = sizes.pop(-1 if last else 0)
    if len(sizes) != 2 or channels not in _MODES:  # noqa: PLR2004 - height and width
        print(f"the package takes tensors, no image files: images have {channels} channels of {sizes}")
        return None
    settings = {
        "size": sizes, "mode": _MODES[channels], "last": last, "output": pixels.name,
        **_prepared(checkpoint, serving, channels),
    }  # fmt: skip
    return parts.python(
        name, model, takes=[_FILE], gives=parts.tensors(model.input, model), work=served.IMAGE, settings=settings,
        needs=("pillow",),
    )  # fmt: skip


def _prepared(checkpoint: Path, serving: Serving, channels: int) -> dict[str, Any]:
    """Return the settings for scaling, cropping and normalizing images.

    Mean and standard deviation are taken from the recipe where the recipe names them. Every setting that the recipe
    does not name is taken from config.json, and timm's defaults replace the settings that config.json lacks.

    Raises StepError where config.json names a crop mode or an interpolation that timm's evaluation does not have.
    """
    own = checkpoints.timm_config(checkpoint)
    config = {name: own[name] if own.get(name) else usual for name, usual in _USUAL.items()}
    resize = {name: config[name] for name in ("crop_pct", "crop_mode", "interpolation")}
    if resize["crop_mode"] not in _CROPS or resize["interpolation"] not in _INTERPOLATIONS:
        raise StepError(
            "recipe does not know how this model's images are prepared",
            [f"{name} in config.json is {value!r}" for name, value in resize.items()],
            f"known: crop_mode {', '.join(_CROPS)}; interpolation {', '.join(_INTERPOLATIONS)}; or "
            "postprocess and tokenizer: false under package.triton for a model that takes tensors",
        )
    return {
        "share": resize["crop_pct"],
        "crop": resize["crop_mode"],
        "interpolation": resize["interpolation"],
        "mean": _channels("mean", serving.mean or config["mean"], channels),
        "std": _channels("std", serving.std or config["std"], channels),
    }


def _channels(name: str, value: Any, channels: int) -> list[float]:
    """Return a list with a number for each channel of an image; a single number in `value` holds for all channels.

    Raises StepError where `value` has neither one number nor a number for each channel.
    """
    numbers = list(value) if isinstance(value, list | tuple) else [value]
    if len(numbers) not in (1, channels) or not all(isinstance(number, int | float) for number in numbers):
        raise StepError(
            f"the model's images have {channels} channels, and {name} is {numbers}",
            hint=f"preprocess: {{{name}: [a number for each channel, or one for all]}}",
        )
    return [float(number) for number in numbers] * (channels if len(numbers) == 1 else 1)
