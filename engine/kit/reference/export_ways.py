"""Export ways: how each family of transformers models is loaded and exported, in one table with the reasons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Exporter = Literal["torchscript", "dynamo"]


@dataclass(frozen=True, kw_only=True)
class ExportWay:
    """The switches of one family; `why` says where they come from."""

    why: str
    attention: str = "eager"
    """The implementation of attention that exporters can read, in the words of transformers."""
    exporters: tuple[Exporter, ...] = ("torchscript", "dynamo")
    """The exporters in the order of the tries. The legacy exporter (torchscript) is 10 to 50 times as fast."""
    free: bool = False
    """Whether the graph may take images of any size, where neither recipe nor image processor give them one size."""
    pixel_mask: bool = False
    """Whether the graph takes the mask that tells an image from its padding."""
    towers: Literal["", "projected", "pooled"] = ""
    """How towers of images and texts give embeddings that are compared: by a projection, or by their own pooling."""
    padded_texts: bool = False
    """Whether texts are always padded to the full length, without a mask."""
    refused: str = ""
    """What the models take that no package can give; empty for a family that is built."""


TEXTS = ExportWay(why="both exporters write these models with eager attention; the first whose graph is equal is taken")
IMAGES = ExportWay(why="attention over patches, whose positions or windows hold for one size of image")

_FREE = ExportWay(why="convolutions, or positions that the model interpolates to the size of the image", free=True)
_MASKED = ExportWay(
    why="images of a batch are padded to one size, and a mask tells the padding", free=True, pixel_mask=True
)
_DEFORMABLE = ExportWay(
    why="a trace keeps the sizes of feature maps as constants: the graph has one size", pixel_mask=True
)
_UNWRITTEN = ExportWay(why="the legacy exporter has no antialiased resizing, and no `fold`", exporters=("dynamo",))
_CLIP = ExportWay(
    why="the projections of two towers are compared, and the tower of texts reads a mask", towers="projected"
)
_SIGLIP = ExportWay(
    why="the model was trained with texts padded to the full length, and pools the last position",
    towers="pooled",
    padded_texts=True,
)
_NAFLEX = ExportWay(why="NaFlex: images keep their ratio", refused="patches of images and their number")
_MASKING = ExportWay(why="it is made for pretraining", refused="a random choice of patches in each call")
_PROMPTED = ExportWay(why="a prompt says what to segment", refused="points or boxes beside an image")
_VIDEOS = ExportWay(why="a row is many images", refused="videos")

_ROWS = (
    ("bit convnext convnextv2 cvt deit dinov2 dinov3_vit efficientnet hgnet_v2 ijepa poolformer pvt_v2 regnet", _FREE),
    ("resnet segformer swiftformer textnet vit vit_msn yolos", _FREE),
    ("conditional_detr detr table-transformer", _MASKED),
    ("deformable_detr", _DEFORMABLE),
    ("dinov2_with_registers mobilevitv2", _UNWRITTEN),
    ("clip clip_text_model clip_vision_model altclip altclip_text_model altclip_vision_model", _CLIP),
    ("chinese_clip chinese_clip_text_model chinese_clip_vision_model", _CLIP),
    ("metaclip_2 metaclip_2_text_model metaclip_2_vision_model", _CLIP),
    ("siglip siglip_text_model siglip_vision_model", _SIGLIP),
    ("siglip2 siglip2_text_model siglip2_vision_model", _NAFLEX),
    ("vit_mae", _MASKING),
    ("edgetam sam sam2 sam3 sam_hq", _PROMPTED),
    ("timesformer videomae videoprism vivit vjepa2 xclip", _VIDEOS),
)
"""Families, by `model_type` of config.json, and their way; for any other family the defaults hold."""
_WAYS = {family: way for families, way in _ROWS for family in families.split()}


def of(config: Mapping[str, Any], *, images: bool) -> ExportWay:
    """Return the way of a model with this config.json, or the default of image models or of text models."""
    return _WAYS.get(str(config.get("model_type")), IMAGES if images else TEXTS)


def gives_embeddings(config: Mapping[str, Any], kind: str) -> bool:
    """Whether a model of the class `kind` gives embeddings that are compared across towers of images and texts."""
    towers = of(config, images=False).towers
    return towers == "pooled" or (towers != "" and (kind.endswith("WithProjection") or "text_config" in config))
