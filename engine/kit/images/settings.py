"""Settings of an image preparation: what a model's own files and the recipe say about it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from engine.errors import FieldError, StepError
from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.images import processors
from engine.kit.onnx.onnx_files import Input

_RESAMPLE = {"nearest": 0, "lanczos": 1, "bilinear": 2, "bicubic": 3, "box": 4, "hamming": 5}
"""Names of Pillow's filters -> their numbers, `PIL.Image.Resampling`."""
_TIMM = {
    "crop_pct": 0.875, "crop_mode": "center", "interpolation": "bicubic", "mean": (0.485, 0.456, 0.406),
    "std": (0.229, 0.224, 0.225),
}  # fmt: skip
"""timm's defaults for settings that a model's config lacks (`timm/data/constants.py`, `resolve_data_config`)."""
_FITS = {"center": "crop", "squash": "stretch", "border": "letterbox"}
"""timm's crop modes -> the recipe's words for `preprocess.fit`."""
_MODES = {1: "L", 3: "RGB"}
_GREY = 114  # the border of a letterbox that the recipe asks for, as YOLO's models are trained with


def of_checkpoint(
    checkpoint: Path, specs: Mapping[str, Input], preprocess: Mapping[str, Any], *, sizes: bool = False
) -> dict[str, Any] | None:
    """Return the settings of `Preparation` for a model; None where it takes no images, or nothing says how.

    `specs` are the inputs of the exported graph; fields of `preprocess`, the recipe's section, replace what the model's
    own files say. Raises StepError for an unknown image processor, and for a size or a field that is not the graph's.
    """
    pixels = [spec for spec in specs.values() if len(spec.shape) == 4]  # noqa: PLR2004 - rows, channels, height, width
    settings = _of_graph(pixels[0], preprocess) if len(pixels) == 1 else None
    own = None if settings is None else _of_files(checkpoint, settings, preprocess)
    if settings is None or (own is None and not preprocess):
        return None
    settings |= {"sizes": sizes, "mask": "pixel_mask" if "pixel_mask" in specs else None, **(own or {})}
    settings |= _sizes_of_recipe(settings, preprocess)
    settings |= _values_of_recipe(settings, preprocess)
    if own is None and None in settings["shape"] and not settings["resize"] and not settings["crop"]:
        what = "the model takes images of several sizes, and nothing says which size they get"
        raise _wrong("size", what, hint="preprocess: {size: 224}, with the size of the training")
    return _fixed(settings, preprocess)


def _of_graph(pixels: Input, preprocess: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what the graph's input decides, and torchvision's defaults for the rest; None for no usual image."""
    is_last = pixels.shape[3] in _MODES and pixels.shape[1] not in _MODES
    layout = preprocess.get("layout", "NHWC" if is_last else "NCHW")
    sides = list(pixels.shape[1:])
    is_first = pixels.shape[1] in _MODES and pixels.shape[3] not in _MODES
    if is_first if layout == "NHWC" else is_last:
        raise _wrong("layout", f"the model's images are not {layout}, but {sides}", hint="leave layout out")
    channels = sides.pop(-1 if layout == "NHWC" else 0)
    channels = len(preprocess.get("channels", "RGB")) if isinstance(channels, str) else channels
    if channels not in _MODES:
        print(f"the package takes tensors, no image files: images have {channels} channels of {sides}")
        return None
    return {
        "output": pixels.name, "dtype": pixels.dtype, "last": layout == "NHWC",
        "shape": [side if isinstance(side, int) else None for side in sides],
        "mode": _MODES[channels], "on_white": False, "reversed": False, "upright": True,
        "resize": None, "resample": _RESAMPLE["bilinear"],
        "crop": None, "fill": [0] * channels, "half_even": True, "scale": 1 / 255 if "float" in pixels.dtype else None,
        "normalize": [], "pad": None,
    }  # fmt: skip


def _of_files(checkpoint: Path, settings: Mapping[str, Any], preprocess: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what the checkpoint's own files say; None where they say nothing, or `preprocess` stands in for them."""
    kind = checkpoints.kind(checkpoint)
    if kind == "timm":
        return _of_timm({**checkpoints.timm_config(checkpoint), **preprocess}, settings)
    file = processors.file_of(checkpoint)
    if kind == "onnx" or not file:
        return None
    if settings["mode"] == "L" and not preprocess:
        what = "the model takes images of one channel, and transformers reads every file as RGB, with three"
        raise StepError(what, hint="preprocess: {channels: L, mean: 0.5, std: 0.5}, with the numbers of the training")
    try:
        return processors.settings(processors.name_of(file) or processors.name_of(checkpoints.config(checkpoint)), file)
    except StepError:
        if preprocess.keys() >= {"size", "mean", "std"}:
            return None
        raise


def _of_timm(config: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return what timm does for evaluation (`transforms_imagenet_eval`), which ignores EXIF rotation."""
    own: dict[str, Any] = {name: config[name] if config.get(name) else usual for name, usual in _TIMM.items()}
    mode, share = own["crop_mode"], own["crop_pct"]
    if mode not in _FITS or own["interpolation"] not in _RESAMPLE:
        raise processors.unknown(f"config.json has crop_mode {mode!r} and interpolation {own['interpolation']!r}")
    mean = _numbers("mean", own["mean"], len(settings["mode"]))
    sides = settings["shape"] if None not in settings["shape"] else list(config["input_size"][1:])
    return {
        "upright": False, "resample": _RESAMPLE[own["interpolation"]], "crop": sides,
        "resize": _fitted(_FITS[mode], [math.floor(side / share) for side in sides]),
        "fill": [round(255 * each) if mode == "border" else 0 for each in mean], "normalize": [(mean, own["std"])],
    }  # fmt: skip


def _sizes_of_recipe(settings: Mapping[str, Any], preprocess: Mapping[str, Any]) -> dict[str, Any]:
    """Return what `size`, `crop` and `fit` change. `size` is what the model takes, or with `crop` what is cropped."""
    size, crop, fit = (preprocess.get(name) for name in ("size", "crop", "fit"))
    changed: dict[str, Any] = {"crop": _sides(crop)} if crop else {}
    if isinstance(size, Mapping) and "shortest_edge" in size:
        return {"resize": dict(size), **changed}
    if not size and not fit:
        return changed
    resize, own_crop = settings["resize"] or {}, settings["crop"]
    if settings["pad"] and not (fit or crop) and 0 < resize.get("longest_edge", 0) <= min(_sides(size)):
        return {}  # the images are padded to the size, in `_fixed`
    own = resize.get("cover") or resize.get("inside") or [resize.get("height") or resize.get("shortest_edge")]
    share = min(own) / min(own_crop) if own_crop and own != [None] else 1
    is_cropped = "cover" in resize or ("shortest_edge" in resize and own_crop) or (crop and not resize)
    usual = "crop" if is_cropped else "letterbox" if "inside" in resize else "stretch"
    taken = _sides(crop or size) or own_crop or settings["shape"]
    if None in taken:
        raise _wrong("fit", "nothing says the size to fit images to", hint=f"preprocess: {{size: 224, fit: {fit}}}")
    scaled = _sides(size) if size and crop else [round(side * share) for side in taken]
    fill = [_GREY] * len(settings["fill"]) if fit == "letterbox" else settings["fill"]
    return {"resize": _fitted(fit or usual, scaled), "crop": taken, "fill": fill}


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
    channels = preprocess.get("channels", "BGR" if settings["reversed"] else mode)
    if len(channels) != len(mode):
        what = f"the model's images have {len(mode)} channels, and {channels} has {len(channels)}"
        raise _wrong("channels", what, hint="channels: L" if mode == "L" else "channels: RGB or BGR")
    if named and "float" not in settings["dtype"]:
        what = f"the model takes {settings['dtype']}, which nothing scales"
        raise _wrong(named[0], what, hint=f"leave {' and '.join(named)} out")
    pairs = settings["normalize"]
    if {"mean", "std"} & preprocess.keys():
        mean, std = pairs[0] if pairs else (0, 1)
        pairs = [(preprocess.get("mean", mean), preprocess.get("std", std)), *pairs[1:]]
    return {
        "resample": _RESAMPLE[preprocess["resample"]] if "resample" in preprocess else settings["resample"],
        "reversed": channels == "BGR", "scale": preprocess.get("scale", settings["scale"]),
        "normalize": [[_numbers("mean", mean, len(mode)), _numbers("std", std, len(mode))] for mean, std in pairs],
    }  # fmt: skip


def _fixed(settings: dict[str, Any], preprocess: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings for the graph's size. Raises StepError where images become another size."""
    shape, resize, crop = settings["shape"], settings["resize"] or {}, settings["crop"]
    if None not in shape and not resize and not crop:
        return {**settings, "resize": _fitted("stretch", shape)}
    if None not in shape and settings["pad"] and 0 < resize.get("longest_edge", 0) <= min(shape):
        return {**settings, "pad": shape}
    sides = crop or [resize.get("height", 0), resize.get("width", 0)]
    if any(own not in (None, side) for own, side in zip(shape, sides, strict=True)):
        facts = [f"the model takes [height, width] {shape}", f"resize: {resize}, crop: {crop}"]
        hint = f"preprocess: {{size: {{height: {shape[0] or '...'}, width: {shape[1] or '...'}}}}}"
        field = next((name for name in ("crop", "size", "fit") if name in preprocess), None)
        if field is not None:
            raise _wrong(field, "images get another size than the model takes", facts, hint)
        raise StepError("the exported model takes images of another size than its image processor makes", facts, hint)
    return settings


def _sides(value: Any) -> list[int]:
    """Return height and width for a field of the recipe: one number for both, or {height, width}; [] for None."""
    if isinstance(value, Mapping):
        return [value["height"], value["width"]]
    return [value, value] if value else []


def _numbers(name: str, value: Any, channels: int) -> list[float]:
    """Return a number for each channel of an image; one number holds for all. Raises StepError for another count."""
    numbers = list(value) if isinstance(value, list | tuple) else [value]
    if len(numbers) not in (1, channels) or not all(isinstance(number, int | float) for number in numbers):
        what = f"the model's images have {channels} channels, and {name} is {numbers}"
        raise _wrong(name, what, hint=f"preprocess: {{{name}: [a number for each channel, or one for all]}}")
    return [float(number) for number in numbers] * (channels if len(numbers) == 1 else 1)


def _wrong(field: str, what: str, facts: Sequence[str] = (), hint: str = "") -> FieldError:
    return FieldError(what, ("preprocess", field), facts, hint)
