"""Image processors of transformers: their defaults, and the settings that mean the same to `Preparation`.

Source: the Pil classes, `transformers/models/*/image_processing_pil_*.py`. A server has no transformers, and a class
fills in what a checkpoint's file leaves out, so the defaults stand here; a test compares them with the classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.errors import StepError

_BILINEAR, _BICUBIC = 2, 3
_HALF = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3}
_IMAGENET = {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}
_CLIP = {"image_mean": [0.48145466, 0.4578275, 0.40821073], "image_std": [0.26862954, 0.26130258, 0.27577711]}
_WARPS_FROM = 384
"""ConvNeXt's processor crops below this size, and warps from it on."""


def _square(side: int) -> dict[str, int]:
    return {"height": side, "width": side}


def _row(resample: int, colours: Mapping[str, Any], size: dict[str, int], **others: Any) -> dict[str, Any]:
    """Return a class's defaults by the names of its fields, with those that most classes have."""
    return {
        "do_resize": True, "do_rescale": True, "do_normalize": True, "do_center_crop": None, "crop_size": None,
        "do_pad": None, "pad_size": None, "rescale_factor": 1 / 255, "default_to_square": "height" in size,
        "resample": resample, "size": size, **colours, **others,
    }  # fmt: skip


def _cropped(side: int, **others: Any) -> dict[str, Any]:
    return {"do_center_crop": True, "crop_size": _square(side), **others}


_DETR = _row(_BILINEAR, _IMAGENET, {"shortest_edge": 800, "longest_edge": 1333}, do_pad=True)
DEFAULTS: Mapping[str, dict[str, Any]] = {
    "ViT": _row(_BILINEAR, _HALF, _square(224)),
    "DeiT": _row(_BICUBIC, _HALF, _square(256), **_cropped(224)),
    "Beit": _row(_BICUBIC, _HALF, _square(224), do_center_crop=False, crop_size=_square(224)),
    "CLIP": _row(_BICUBIC, _CLIP, {"shortest_edge": 224}, **_cropped(224)),
    "ChineseCLIP": _row(_BICUBIC, _CLIP, {"shortest_edge": 224}, **_cropped(224)),
    "Siglip": _row(_BICUBIC, _HALF, _square(224), default_to_square=False),
    "Bit": _row(_BICUBIC, _CLIP, {"shortest_edge": 224}, **_cropped(224)),
    "ConvNext": _row(_BICUBIC, _HALF, {"shortest_edge": 384}, crop_pct=224 / 256),
    "PoolFormer": _row(_BICUBIC, _IMAGENET, {"shortest_edge": 224}, **_cropped(224, crop_pct=0.9)),
    "Levit": _row(_BICUBIC, _IMAGENET, {"shortest_edge": 224}, **_cropped(224)),
    "MobileViT": _row(
        _BICUBIC, _HALF, {"shortest_edge": 224}, **_cropped(256, do_normalize=None, do_flip_channel_order=True)
    ),
    "MobileNetV1": _row(_BILINEAR, _HALF, {"shortest_edge": 256}, **_cropped(224)),
    "MobileNetV2": _row(_BILINEAR, _HALF, {"shortest_edge": 256}, **_cropped(224)),
    "EfficientNet": _row(
        _BICUBIC, _HALF, _square(346), do_center_crop=False, crop_size=_square(289), rescale_offset=False,
        include_top=True,
    ),
    "Pvt": _row(_BICUBIC, _IMAGENET, _square(224)),
    "Segformer": _row(_BILINEAR, _IMAGENET, _square(512)),
    "DPT": _row(
        _BICUBIC, _HALF, _square(384), do_pad=False, ensure_multiple_of=1, keep_aspect_ratio=False, size_divisor=None
    ),
    "Detr": _DETR, "ConditionalDetr": _DETR, "DeformableDetr": _DETR, "Yolos": _DETR,
    "RTDetr": _row(_BILINEAR, _IMAGENET, _square(640), default_to_square=False, do_normalize=False, do_pad=False),
}  # fmt: skip
"""Name of a class without `ImageProcessor` -> its defaults."""
_DETECTORS = ("Detr", "ConditionalDetr", "DeformableDetr", "Yolos", "RTDetr")
_LEFT_OUT: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("Beit", "ConvNext", "MobileNetV2", "EfficientNet"), ("do_pad",)),
    **dict.fromkeys((*_DETECTORS, "DPT"), ("do_center_crop",)),
    "Segformer": ("do_center_crop", "do_pad"),
    "MobileViT": ("do_normalize", "do_pad"),
}
"""Steps that a class leaves out, whatever a file says."""
_NEEDED = {
    "do_resize": ("size", "resample", "crop_pct"),
    "do_center_crop": ("crop_size",),
    "do_rescale": ("rescale_factor",),
    "do_normalize": ("image_mean", "image_std"),
}
"""A step -> the fields without which it is not possible."""
_SIZES = ({"height", "width"}, {"shortest_edge"}, {"shortest_edge", "longest_edge"}, {"max_height", "max_width"})
_LONGEST = 1333
"""The longest side where a detector's file names its size by one number, and no `max_size`."""


def name_of(file: Mapping[str, Any]) -> str:
    """Return the class that a preprocessor_config.json names, without suffixes; "" where it names none."""
    named = str(file.get("image_processor_type") or file.get("feature_extractor_type") or "")
    return (
        named.removesuffix("Fast").removesuffix("Pil").removesuffix("ImageProcessor").removesuffix("FeatureExtractor")
    )


def settings(name: str, file: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of `Preparation` for a class and a checkpoint's file.

    Raises StepError for a class that is not in `DEFAULTS`, and for a size that the class does not take.
    """
    if name not in DEFAULTS:
        raise unknown(f"its image processor is {name}ImageProcessor" if name else "no file names its image processor")
    own = {field: file.get(field, usual) for field, usual in DEFAULTS[name].items()}
    own |= dict.fromkeys(_LEFT_OUT.get(name, ()))
    for field, needed in _NEEDED.items():
        if own[field] and (null := [each for each in needed if own.get(each, 0) is None]):
            raise unknown(f"{field} is true, and {null[0]} is null")
    if name in _DETECTORS and isinstance(own["size"], int) and own["do_pad"]:
        own["size"] = {"shortest_edge": own["size"], "longest_edge": file.get("max_size", _LONGEST)}
    crop = _sides(own["crop_size"]) if own["do_center_crop"] else None
    resize = _resize(name, own, _size(own["size"], square=own["default_to_square"])) if own["do_resize"] else None
    if name == "ConvNext" and resize and "shortest_edge" in resize:
        if crop:
            raise unknown("ConvNextImageProcessor crops twice: crop_pct and do_center_crop")
        crop = [_size(own["size"], square=False)["shortest_edge"]] * 2
    normalize = [(1, 1)] if own.get("rescale_offset") and own["do_rescale"] else []
    normalize += [(own["image_mean"], own["image_std"])] if own["do_normalize"] else []
    normalize += [(0, own["image_std"])] if own.get("include_top") else []
    pad = _sides(own["pad_size"]) if own["pad_size"] else "batch"
    return {
        "resize": resize, "resample": own["resample"], "crop": crop, "half_even": False,
        "scale": own["rescale_factor"] if own["do_rescale"] else None, "normalize": normalize,
        "reversed": bool(own.get("do_flip_channel_order")),
        "pad": own.get("size_divisor", pad) if own["do_pad"] else None,
    }  # fmt: skip


def _resize(name: str, own: Mapping[str, Any], size: dict[str, int]) -> dict[str, Any]:
    """Return `resize` of `Preparation` for the size of a class, some of which change it or refuse some forms of it."""
    edge, sides = size.get("shortest_edge"), [size[side] for side in ("height", "width") if side in size]
    if name == "ConvNext" and edge:
        return {"shortest_edge": int(edge / own["crop_pct"])} if edge < _WARPS_FROM else _square(edge)
    if name == "PoolFormer" and (edge or sides):
        tall, wide = (int(side / own["crop_pct"]) for side in sides or [size["shortest_edge"]] * 2)
        return {"shortest_edge": tall} if tall == wide else {"height": tall, "width": wide}
    if name == "Levit" and edge:
        return {"shortest_edge": int(256 / 224 * edge)}
    if name == "DPT" and sides:
        multiple, ratio = own["ensure_multiple_of"], own["keep_aspect_ratio"]
        is_plain = not ratio and not any(side % multiple for side in sides)
        return size if is_plain else {**size, "multiple": multiple, "keep_aspect": ratio}
    if name in ("ConvNext", "PoolFormer", "DPT") or (name in _DETECTORS and set(size) == {"shortest_edge"}):
        raise unknown(f"{name}ImageProcessor takes no size {size}")
    return {**size, "multiple": 16} if name == "Yolos" and "longest_edge" in size else size


def _size(value: Any, *, square: bool) -> dict[str, int]:
    """Return a size by the names of its sides. Older files have one number: of both sides, or of the shorter side."""
    if isinstance(value, int):
        value = _square(value) if square else {"shortest_edge": value}
    elif isinstance(value, list) and len(value) == 2:  # noqa: PLR2004 - height and width
        value = {"height": value[0], "width": value[1]}
    if (
        not isinstance(value, dict)
        or set(value) not in _SIZES
        or not all(isinstance(each, int) for each in value.values())
    ):
        raise unknown(f"a size in its files is {value!r}")
    return value


def _sides(value: Any) -> list[int]:
    size = _size(value, square=True)
    if "height" not in size:
        raise unknown(f"a size in its files is {value!r}")
    return [size["height"], size["width"]]


def unknown(*facts: str) -> StepError:
    """Return the error for a model whose image preparation is not known."""
    return StepError(
        "recipe does not know how this model's images are prepared",
        [*facts, f"image processors that are known: {', '.join(DEFAULTS)}"],
        "preprocess: {size: ..., mean: [...], std: [...]} in the recipe says it, or postprocess and tokenizer: false "
        "under package.triton for a model that takes tensors",
    )
