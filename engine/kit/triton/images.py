"""Images: what makes tensors of image files, as a part of the repository of a model of timm."""

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
from engine.tasks import AnswerTensor

FILE = AnswerTensor("IMAGE", "TYPE_STRING", (1,))
"""The input of the entry: an image file's bytes, PNG, JPEG or whatever Pillow reads."""
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
"""What timm takes where a model's config does not say (`timm/data/constants.py`, `resolve_data_config`)."""


def part(name: str, model: Config, signature: Signature, serving: Serving, checkpoint: Path) -> Part | None:
    """Return the python model that turns image files into what `model` takes; None where it takes something else."""
    images = serving.images
    wanted = signature.inputs.get(checkpoints.IMAGES)
    if images is None or wanted is None or len(signature.inputs) > 1 or checkpoints.kind(checkpoint) != "timm":
        return None
    sizes = [each for each in wanted.shape[1:] if isinstance(each, int)]
    last = images.layout == "NHWC"
    channels = sizes.pop(-1 if last else 0)
    if len(sizes) != 2 or channels not in _MODES:  # noqa: PLR2004 - height and width
        print(f"the package takes tensors, no image files: images have {channels} channels of {sizes}")
        return None
    settings = {
        "size": sizes, "mode": _MODES[channels], "last": last, "output": wanted.name,
        **_prepared(checkpoint, serving, channels),
    }  # fmt: skip
    return parts.python(
        name, model, takes=[FILE], gives=parts.tensors(model.input, model), work=served.IMAGE, settings=settings,
        needs=("pillow",),
    )  # fmt: skip


def _prepared(checkpoint: Path, serving: Serving, channels: int) -> dict[str, Any]:
    """Return how images are scaled, cut and normalized: as the recipe says, the model's own config, or timm.

    Raises StepError where config.json asks for what timm's evaluation does not know.
    """
    told = checkpoints.timm_config(checkpoint)
    told = {name: told[name] if told.get(name) else usual for name, usual in _USUAL.items()}
    asked = {"crop_pct": told["crop_pct"], "crop_mode": told["crop_mode"], "interpolation": told["interpolation"]}
    if asked["crop_mode"] not in _CROPS or asked["interpolation"] not in _INTERPOLATIONS:
        raise StepError(
            "nobody here knows how this model's images are prepared",
            [f"{name} in config.json is {value!r}" for name, value in asked.items()],
            f"known: crop_mode {', '.join(_CROPS)}; interpolation {', '.join(_INTERPOLATIONS)}; or "
            "postprocess and tokenizer: false under package.triton for a model that takes tensors",
        )
    return {
        "share": asked["crop_pct"],
        "crop": asked["crop_mode"],
        "interpolation": asked["interpolation"],
        "mean": _channels("mean", serving.mean or told["mean"], channels),
        "std": _channels("std", serving.std or told["std"], channels),
    }


def _channels(name: str, said: Any, channels: int) -> list[float]:
    """Return a number for each channel; one alone stands for all. Raises StepError for any other count."""
    numbers = list(said) if isinstance(said, list | tuple) else [said]
    if len(numbers) not in (1, channels) or not all(isinstance(number, int | float) for number in numbers):
        raise StepError(
            f"the model's images have {channels} channels, and {name} is {numbers}",
            hint=f"preprocess: {{{name}: [a number for each channel, or one for all]}}",
        )
    return [float(number) for number in numbers] * (channels if len(numbers) == 1 else 1)
