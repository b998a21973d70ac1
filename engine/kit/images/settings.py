"""Settings of an image preparation: what a model's own files and the recipe say about it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.errors import StepError
from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.checkpoints import json_files
from engine.kit.images import processors
from engine.kit.onnx.onnx_files import Input

_RESAMPLE = {"nearest": 0, "lanczos": 1, "bilinear": 2, "bicubic": 3, "box": 4, "hamming": 5}
"""Names of Pillow's filters -> their numbers, `PIL.Image.Resampling`."""
_TIMM: Mapping[str, Any] = {
    "crop_pct": 0.875,
    "crop_mode": "center",
    "interpolation": "bicubic",
    "mean": (0.485, 0.456, 0.406),
    "std": (0.229, 0.224, 0.225),
}
"""timm's defaults for settings that a model's config lacks (`timm/data/constants.py`, `resolve_data_config`)."""
_FITS = {"center": "crop", "squash": "stretch", "border": "letterbox"}
"""timm's crop modes -> the recipe's words for `preprocess.fit`."""
_MODES = {1: "L", 3: "RGB"}
_GREY = 114
"""The value of the border where the recipe asks for a letterbox, as YOLO's models are trained with."""
_REPLACES_ALL = {"size", "mean", "std"}
"""Fields of `preprocess` with which the recipe stands in for an image processor that is not known."""


def of_checkpoint(
    checkpoint: Path, specs: Mapping[str, Input], preprocess: Mapping[str, Any], *, sizes: bool = False
) -> dict[str, Any] | None:
    """Return the settings of `Preparation` for a model; None where it takes no images, or nothing says how.

    `specs` are the inputs of the exported graph. `preprocess` is the recipe's section: its fields replace what the
    checkpoint's own files say. `sizes` asks for the sizes of the image files, too.

    Raises StepError for an image processor or a value that is not known, and where images do not become the size that
    the graph takes.
    """
    pixels = [spec for spec in specs.values() if len(spec.shape) == 4]  # noqa: PLR2004 - rows, channels, height, width
    settings = _of_graph(pixels[0], preprocess) if len(pixels) == 1 else None
    own = None if settings is None else _of_files(checkpoint, settings, preprocess)
    if settings is None or (own is None and not preprocess):
        return None
    settings |= {"sizes": sizes, "mask": "pixel_mask" if "pixel_mask" in specs else None, **(own or {})}
    settings |= _sizes_of_recipe(settings, preprocess)
    settings |= _values_of_recipe(settings, preprocess)
    return _fixed(settings)


def _of_graph(pixels: Input, preprocess: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what the graph's input decides, and torchvision's defaults for the rest; None for no usual image."""
    is_last = pixels.shape[3] in _MODES and pixels.shape[1] not in _MODES
    layout = preprocess.get("layout", "NHWC" if is_last else "NCHW")
    sides = list(pixels.shape[1:])
    channels = sides.pop(-1 if layout == "NHWC" else 0)
    if isinstance(channels, str):
        channels = len(preprocess.get("channels", "RGB"))
    if channels not in _MODES:
        print(f"the package takes tensors, no image files: images have {channels} channels of {sides}")
        return None
    return {
        "output": pixels.name, "dtype": pixels.dtype, "last": layout == "NHWC",
        "shape": [side if isinstance(side, int) else None for side in sides],
        "mode": _MODES[channels], "reversed": False, "upright": True, "resize": None, "resample": _RESAMPLE["bilinear"],
        "crop": None, "fill": [0] * channels, "half_even": True, "scale": 1 / 255 if "float" in pixels.dtype else None,
        "normalize": [], "pad": None,
    }  # fmt: skip


def _of_files(checkpoint: Path, settings: Mapping[str, Any], preprocess: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what the checkpoint's own files say; None where they say nothing, or `preprocess` stands in for them."""
    kind = checkpoints.kind(checkpoint)
    if kind == "timm":
        return _of_timm(checkpoints.timm_config(checkpoint), settings, preprocess)
    file = json_files.settings(checkpoint / "processor_config.json").get("image_processor")
    file = file or json_files.settings(checkpoint / "preprocessor_config.json")
    if kind == "onnx" or not file:
        return None
    name = processors.name_of(file) or processors.name_of(checkpoints.config(checkpoint))
    if name not in processors.DEFAULTS and preprocess.keys() >= _REPLACES_ALL:
        return None
    return processors.settings(name, file)


def _of_timm(config: Mapping[str, Any], settings: Mapping[str, Any], preprocess: Mapping[str, Any]) -> dict[str, Any]:
    """Return what timm does for evaluation (`transforms_imagenet_eval`), which ignores EXIF rotation."""
    own = {name: config[name] if config.get(name) else usual for name, usual in _TIMM.items()}
    if own["crop_mode"] not in _FITS or own["interpolation"] not in _RESAMPLE:
        raise processors.unknown(
            f"crop_mode and interpolation in config.json: {own['crop_mode']!r}, {own['interpolation']!r}"
        )
    mean = _numbers("mean", preprocess.get("mean", own["mean"]), len(settings["mode"]))
    return {
        "upright": False, "resample": _RESAMPLE[own["interpolation"]], "crop": settings["shape"],
        "resize": _fitted(_FITS[own["crop_mode"]], [math.floor(side / own["crop_pct"]) for side in settings["shape"]]),
        "fill": [round(255 * each) if own["crop_mode"] == "border" else 0 for each in mean],
        "normalize": [(mean, own["std"])],
    }  # fmt: skip


def _sizes_of_recipe(settings: Mapping[str, Any], preprocess: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that `size`, `crop` and `fit` of the recipe change.

    `size` is what the model takes, or with `crop` what is cropped. A checkpoint that crops scales in proportion.
    """
    size, crop, fit = (preprocess.get(name) for name in ("size", "crop", "fit"))
    changed: dict[str, Any] = {"crop": _sides(crop)} if crop else {}
    if isinstance(size, Mapping) and "shortest_edge" in size:
        return {"resize": dict(size), **changed}
    if not size and not fit:
        return changed
    resize, own_crop = settings["resize"] or {}, settings["crop"]
    own = resize.get("cover") or resize.get("inside") or [resize.get("height") or resize.get("shortest_edge")]
    share = min(own) / min(own_crop) if own_crop and own != [None] else 1
    usual = "letterbox" if "inside" in resize else "stretch"
    if "cover" in resize or ("shortest_edge" in resize and own_crop) or (crop and not resize):
        usual = "crop"
    taken = _sides(crop or size) or own_crop or settings["shape"]
    if None in taken:
        raise StepError(
            "nothing says which size images are fitted to", [f"preprocess.fit: {fit}"], "preprocess: {size: 224}"
        )
    scaled = _sides(size) if size and crop else [round(side * share) for side in taken]
    changed |= {"resize": _fitted(fit or usual, scaled), "crop": taken}
    return {**changed, "fill": [_GREY] * len(settings["fill"])} if fit == "letterbox" else changed


def _fitted(fit: str, sides: list[int]) -> dict[str, Any]:
    """Return how `Preparation` resizes images to a size; torchvision rounds otherwise where both sides are equal."""
    if fit == "stretch":
        return {"height": sides[0], "width": sides[1]}
    if fit == "crop" and sides[0] == sides[1]:
        return {"shortest_edge": sides[0]}
    return {"cover" if fit == "crop" else "inside": sides}


def _values_of_recipe(settings: Mapping[str, Any], preprocess: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that the recipe's other fields change. Raises StepError where the graph rules them out."""
    mode, named = settings["mode"], [name for name in ("scale", "mean", "std") if name in preprocess]
    if len(preprocess.get("channels", mode)) != len(mode):
        raise StepError(
            f"the model's images have {len(mode)} channels", [f"preprocess.channels: {preprocess['channels']}"]
        )
    if named and "float" not in settings["dtype"]:
        raise StepError(
            f"the model takes pixels as {settings['dtype']}, which nothing scales or normalizes",
            [f"preprocess has {', '.join(named)}"],
            f"take {', '.join(named)} out of preprocess",
        )
    changed = {"reversed": preprocess["channels"] == "BGR"} if "channels" in preprocess else {}
    if "resample" in preprocess:
        changed["resample"] = _RESAMPLE[preprocess["resample"]]
    mean, std = settings["normalize"][0] if settings["normalize"] else (0, 1)
    pairs = [*settings["normalize"]]
    if "mean" in preprocess or "std" in preprocess:
        pairs[:1] = [(preprocess.get("mean", mean), preprocess.get("std", std))]
    numbers = [[_numbers("mean", mean, len(mode)), _numbers("std", std, len(mode))] for mean, std in pairs]
    return {**changed, "scale": preprocess.get("scale", settings["scale"]), "normalize": numbers}


def _fixed(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings for the graph's size. Raises StepError where images become another size."""
    shape, resize, crop = settings["shape"], settings["resize"], settings["crop"]
    if None not in shape and resize is None and crop is None:
        resize = _fitted("stretch", shape)
    sides = crop or [(resize or {}).get(side, 0) for side in ("height", "width")]
    if None not in shape and settings["pad"] == "batch" and 0 < (resize or {}).get("longest_edge", 0) <= min(shape):
        return {**settings, "pad": shape}
    if any(own not in (None, side) for own, side in zip(shape, sides, strict=True)):
        height, width = (each or "any" for each in shape)
        raise StepError(
            f"the model takes images of {width} x {height} pixels, and its image processor does not make them",
            [f"{name}: {settings[name]}" for name in ("resize", "crop", "pad")],
            "preprocess: {size: {height: ..., width: ...}}",
        )
    return {**settings, "resize": resize}


def _sides(value: Any) -> list[int]:
    """Return height and width for a field of the recipe: one number for both, or {height, width}; [] for None."""
    if isinstance(value, Mapping):
        return [value["height"], value["width"]]
    return [value, value] if value else []


def _numbers(name: str, value: Any, channels: int) -> list[float]:
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
