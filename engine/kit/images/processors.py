"""Image processors of transformers: their defaults, and what `Preparation` does in their place."""

# Source: the Pil classes, `transformers/models/*/image_processing_pil_*.py`. Their defaults stand here because a class
# fills in what a checkpoint's file leaves out; a test compares them with the installed transformers.

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.errors import StepError
from engine.kit.checkpoints import json_files

_BILINEAR, _BICUBIC = 2, 3
_HALF = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3}
_IMAGENET = {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}
_CLIP = {"image_mean": [0.48145466, 0.4578275, 0.40821073], "image_std": [0.26862954, 0.26130258, 0.27577711]}


def _row(
    resample: int, colours: Mapping[str, Any], size: Any, *, square: bool = True, crop: int | None = None, **others: Any
) -> dict[str, Any]:
    """Return a class's defaults by the names of its fields. `never` names steps that a class ignores in a file."""
    return {
        "do_resize": True, "size": size, "default_to_square": square, "resample": resample,
        "do_center_crop": crop is not None, "crop_size": crop, "do_rescale": True, "rescale_factor": 1 / 255,
        "do_normalize": True, **colours, "do_convert_rgb": colours is _CLIP, "do_pad": False, "pad_size": None,
        "never": (), **others,
    }  # fmt: skip


_EDGES = {"shortest_edge": 800, "longest_edge": 1333}
_DETR = _row(_BILINEAR, _IMAGENET, _EDGES, square=False, do_pad=True, never=("do_center_crop",))
DEFAULTS: Mapping[str, dict[str, Any]] = {
    "ViT": _row(_BILINEAR, _HALF, 224),
    "DeiT": _row(_BICUBIC, _HALF, 256, crop=224),
    "Beit": _row(_BICUBIC, _HALF, 224, crop=224, do_center_crop=False, never=("do_pad",)),
    "CLIP": _row(_BICUBIC, _CLIP, 224, square=False, crop=224),
    "ChineseCLIP": _row(_BICUBIC, _CLIP, 224, square=False, crop=224),
    "Siglip": _row(_BICUBIC, _HALF, {"height": 224, "width": 224}, square=False, do_convert_rgb=True),
    "Bit": _row(_BICUBIC, _CLIP, 224, square=False, crop=224),
    "ConvNext": _row(_BICUBIC, _HALF, 384, square=False, crop_pct=224 / 256, never=("do_pad",)),
    "PoolFormer": _row(_BICUBIC, _IMAGENET, 224, square=False, crop=224, crop_pct=0.9),
    "Levit": _row(_BICUBIC, _IMAGENET, 224, square=False, crop=224),
    "MobileViT": _row(
        _BICUBIC, _HALF, 224, square=False, crop=256, do_flip_channel_order=True, never=("do_normalize", "do_pad")
    ),
    "MobileNetV1": _row(_BILINEAR, _HALF, 256, square=False, crop=224),
    "MobileNetV2": _row(_BILINEAR, _HALF, 256, square=False, crop=224, never=("do_pad",)),
    "EfficientNet": _row(
        _BICUBIC, _HALF, 346, crop=289, do_center_crop=False, rescale_offset=False, include_top=True, never=("do_pad",)
    ),
    "Pvt": _row(_BICUBIC, _IMAGENET, 224),
    "Segformer": _row(_BILINEAR, _IMAGENET, 512, never=("do_center_crop", "do_pad")),
    "DPT": _row(_BICUBIC, _HALF, 384, ensure_multiple_of=1, keep_aspect_ratio=False, never=("do_center_crop",)),
    "TextNet": _row(
        _BILINEAR,
        _IMAGENET,
        640,
        square=False,
        crop=224,
        do_center_crop=False,
        do_convert_rgb=True,
        size_divisor=32,
        never=("do_pad",),
    ),
    **dict.fromkeys(("Detr", "ConditionalDetr", "DeformableDetr", "Yolos"), _DETR),
    "RTDetr": {**_DETR, "size": {"height": 640, "width": 640}, "do_normalize": False, "do_pad": False},
}
"""Name of a class without `ImageProcessor` -> its defaults."""
_SIZES = ({"height", "width"}, {"shortest_edge"}, {"shortest_edge", "longest_edge"}, {"max_height", "max_width"})
_DETECTORS = ("Detr", "ConditionalDetr", "DeformableDetr", "Yolos", "RTDetr")
_WARPS_FROM = 384  # ConvNeXt's processor warps images to this size and larger ones, and crops for smaller ones


def file_of(checkpoint: Path) -> dict[str, Any]:
    """Return what a checkpoint's files say about its image processor; {} where they say nothing.

    Where both files do, transformers reads the part of `processor_config.json`.
    """
    nested = json_files.settings(checkpoint / "processor_config.json").get("image_processor")
    file: dict[str, Any] = nested or json_files.settings(checkpoint / "preprocessor_config.json")
    return file


def name_of(file: Mapping[str, Any]) -> str:
    """Return the class that a preprocessor_config.json names, without suffixes; "" where it names none."""
    named = str(file.get("image_processor_type") or file.get("feature_extractor_type") or "")
    return re.sub("(ImageProcessor|FeatureExtractor)(Pil|Fast)?$", "", named)


def settings(name: str, file: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a class does with a checkpoint's file. Raises StepError where `Preparation` cannot do the same."""
    if name not in DEFAULTS:
        raise unknown(f"its image processor is {name}ImageProcessor" if name else "no file names its image processor")
    own = {field: file.get(field, usual) for field, usual in DEFAULTS[name].items()}
    own |= dict.fromkeys(DEFAULTS[name]["never"])
    if DEFAULTS[name] is _DETR and isinstance(own["size"], int):
        own["size"] = {"shortest_edge": own["size"], "longest_edge": file.get("max_size", _EDGES["longest_edge"])}
    size = _size(own["size"], square=own["default_to_square"]) if own["do_resize"] else {}
    resize = _resize(name, own, size) if size else None
    crop = _sides(own["crop_size"]) if own["do_center_crop"] else None
    if name == "ConvNext" and resize and "shortest_edge" in resize:
        crop = [size["shortest_edge"]] * 2
    normalize = [(1, 1)] if own.get("rescale_offset") and own["do_rescale"] else []
    normalize += [(own["image_mean"], own["image_std"])] if own["do_normalize"] else []
    normalize += [(0, own["image_std"])] if own.get("include_top") else []
    return {
        "resize": resize, "resample": own["resample"], "crop": crop, "half_even": False,
        "scale": own["rescale_factor"] if own["do_rescale"] else None, "normalize": normalize,
        "reversed": bool(own.get("do_flip_channel_order")), "on_white": bool(own["do_convert_rgb"]),
        "pad": (_sides(own["pad_size"]) if own["pad_size"] else "batch") if own["do_pad"] else None,
    }  # fmt: skip


def _resize(name: str, own: Mapping[str, Any], size: dict[str, int]) -> dict[str, Any]:
    """Return `resize` of `Preparation`: some classes change the size of their file, or refuse some forms of it."""
    edge, sides = size.get("shortest_edge"), [size[side] for side in ("height", "width") if side in size]
    if name == "ConvNext" and edge and not own["do_center_crop"]:
        return {"shortest_edge": int(edge / own["crop_pct"])} if edge < _WARPS_FROM else {"height": edge, "width": edge}
    if name == "PoolFormer" and (edge or sides):
        tall, wide = (int(side / own["crop_pct"]) for side in sides or [size["shortest_edge"]] * 2)
        return {"shortest_edge": tall} if tall == wide else {"height": tall, "width": wide}
    if name == "Levit" and edge:
        return {"shortest_edge": int(256 / 224 * edge)}
    if name == "TextNet" and set(size) == {"shortest_edge"}:
        return {**size, "divisor": own["size_divisor"]}
    is_plain = sides and not own["do_pad"] and not own.get("keep_aspect_ratio")
    if name == "DPT" and is_plain and not any(side % own["ensure_multiple_of"] for side in sides):
        return size
    if name in ("ConvNext", "PoolFormer", "DPT", "TextNet") or (name in _DETECTORS and set(size) == {"shortest_edge"}):
        raise unknown(f"{name}ImageProcessor with {', '.join(f'{field} {value}' for field, value in own.items())}")
    return {**size, "multiple": 16} if name == "Yolos" and "longest_edge" in size else size


def _size(value: Any, *, square: bool) -> dict[str, int]:
    """Return a size by the names of its sides. Older files have one number: of both sides, or of the shorter side."""
    if isinstance(value, int):
        value = {"height": value, "width": value} if square else {"shortest_edge": value}
    elif isinstance(value, list) and len(value) == 2:  # noqa: PLR2004 - height and width
        value = {"height": value[0], "width": value[1]}
    if not isinstance(value, dict) or set(value) not in _SIZES or not all(isinstance(n, int) for n in value.values()):
        raise unknown(f"a size in its files is {value!r}")
    return value


def _sides(value: Any) -> list[int]:
    size = _size(value, square=True)
    if "height" not in size:
        raise unknown(f"a size in its files is {value!r}")
    return [size["height"], size["width"]]


def unknown(fact: str) -> StepError:
    """Return the error for a model whose image preparation is not known."""
    return StepError(
        "recipe does not know how this model's images are prepared",
        [fact, f"image processors that are known: {', '.join(DEFAULTS)}"],
        "preprocess: {size: ..., mean: [...], std: [...]}; or tokenizer: false under package.triton: it takes tensors",
    )
