"""Export ways: how each family of transformers models is loaded and exported, in one table with the reasons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Exporter = Literal["torchscript", "dynamo"]


@dataclass(frozen=True, kw_only=True)
class Way:
    """The switches of one family; `why` says where they come from."""

    why: str
    attention: str = "eager"
    """The implementation of attention that exporters can read, in the words of transformers."""
    exporters: tuple[Exporter, ...] = ("torchscript", "dynamo")
    """The exporters in the order of the tries. The legacy exporter (torchscript) is 10 to 50 times as fast."""
    free: bool = False
    """Whether the graph may take images of any height and width.

    The axes are free where, in addition, neither the recipe nor the image processor gives all images one size.
    """
    pixel_mask: bool = False
    """Whether the graph takes the mask that tells an image from its padding."""
    towers: Literal["", "projected", "pooled"] = ""
    """How towers of images and texts give embeddings that are compared: by a projection, or by their own pooling."""
    padded_texts: bool = False
    """Whether texts are always padded to the full length, without a mask."""
    unfolds: bool = False
    """Whether `torch.nn.functional.unfold` and `fold` are replaced by reshapes, see `constant_parts`."""
    refused: str = ""
    """What the models take or do that no package can give or answer; empty for a family that is built."""


TEXTS = Way(why="both exporters write these models with eager attention; the first whose graph is equal is taken")
IMAGES = Way(why="convolutions and attention over patches; positions or windows hold for one size of image")

_ANY_SIZE = Way(why="convolutions, or positions that are interpolated to the size of the image", free=True)
_PADDED = Way(why="images of a batch are padded to one size, and the mask tells the padding", free=True, pixel_mask=True)

_ROWS: tuple[tuple[tuple[str, ...], Way], ...] = (
    (
        ("bit", "convnext", "convnextv2", "cvt", "deit", "dinov2", "dinov3_vit", "efficientnet", "hgnet_v2", "ijepa",
         "poolformer", "pvt_v2", "regnet", "resnet", "segformer", "swiftformer", "textnet", "vit", "vit_msn", "yolos"),
        _ANY_SIZE,
    ),
    (("conditional_detr", "detr", "table-transformer"), _PADDED),
    (
        ("deformable_detr",),
        Way(why="a trace keeps the sizes of the feature maps as constants, so the graph has one size", pixel_mask=True),
    ),
    (
        ("altclip", "altclip_text_model", "altclip_vision_model", "chinese_clip", "chinese_clip_text_model",
         "chinese_clip_vision_model", "clip", "clip_text_model", "clip_vision_model", "metaclip_2",
         "metaclip_2_text_model", "metaclip_2_vision_model"),
        Way(why="two towers, whose projections are compared; the towers of texts read a mask", towers="projected"),
    ),
    (
        ("siglip", "siglip_text_model", "siglip_vision_model"),
        Way(
            why="two towers that pool; texts were padded in training to the full length without a mask, and the last "
            "position is pooled; a trace keeps the number of patches as a constant",
            towers="pooled",
            padded_texts=True,
        ),
    ),
    (
        ("mobilevitv2",),
        Way(why="no exporter writes `fold`; patches do not overlap, so that a reshape does the same", unfolds=True),
    ),
    (
        ("siglip2", "siglip2_text_model", "siglip2_vision_model"),
        Way(why="NaFlex: the processor cuts each image into patches", refused="patches of images, with their number"),
    ),
    (
        ("vit_mae", "vit_mae_model"),
        Way(why="pretraining hides other patches in each call", refused="a random choice of patches in each call"),
    ),
    (
        ("sam", "sam2", "sam2_video", "sam3", "sam_hq", "edgetam"),
        Way(why="a prompt says what to segment", refused="points or boxes that say what to segment"),
    ),
    (
        ("timesformer", "videomae", "vivit", "vjepa2", "x_clip", "videoprism"),
        Way(why="a row is several images in the order of time", refused="videos"),
    ),
)  # fmt: skip
"""Families, by `model_type` of config.json, and their way; for any other family the defaults hold."""
_WAYS = {family: way for families, way in _ROWS for family in families}


def of(config: Mapping[str, Any], *, images: bool) -> Way:
    """Return the way of a model with this config.json, or the default of image models or of text models."""
    return _WAYS.get(str(config.get("model_type")), IMAGES if images else TEXTS)


def gives_embeddings(config: Mapping[str, Any], kind: str) -> bool:
    """Whether the class `kind` of a model gives embeddings of its towers, which are compared across the towers."""
    way = of(config, images=False)
    return way.towers == "pooled" or (way.towers != "" and (kind.endswith("WithProjection") or "text_config" in config))
