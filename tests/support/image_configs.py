"""Small configs and image processors of the architectures of `image_models`: a row per pair with a task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

CLASSIFICATION = "image-classification"
FEATURES = "image-feature-extraction"
TEXTS = "feature-extraction"
ZERO_SHOT = "zero-shot-image-classification"
DETECTION = "object-detection"
SEGMENTATION = "image-segmentation"

AUTO_CLASSES = {
    CLASSIFICATION: "AutoModelForImageClassification",
    FEATURES: "AutoModel",
    TEXTS: "AutoModel",
    ZERO_SHOT: "AutoModelForZeroShotImageClassification",
    DETECTION: "AutoModelForObjectDetection",
    SEGMENTATION: "AutoModelForSemanticSegmentation",
}


@dataclass(frozen=True, kw_only=True)
class Processor:
    """The class of an image processor, without `ImageProcessor`, and what differs from its default settings."""

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Row:
    """What one small checkpoint is made of."""

    config: Mapping[str, Any]
    processor: Processor | None
    tokenizer: str | None = None
    """The kind of tokenizer: a function of `image_tokenizers`."""
    model: str | None = None
    """The class of the model, where the task's class of transformers takes another one."""


def _square(name: str, side: int, **settings: Any) -> Processor:
    return Processor(name=name, settings={"size": {"height": side, "width": side}, **settings})


def _cropped(name: str, side: int, crop: int, **settings: Any) -> Processor:
    size = {"shortest_edge": side}
    return Processor(name=name, settings={"size": size, "crop_size": {"height": crop, "width": crop}, **settings})


def _shortest(name: str, side: int, **settings: Any) -> Processor:
    return Processor(name=name, settings={"size": {"shortest_edge": side}, **settings})


_IMAGENET = {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}
_NARROW = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
_VIT = {**_NARROW, "image_size": 32, "patch_size": 8}
_DINO = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "image_size": 28, "patch_size": 7}
_BEIT = {**_VIT, "use_relative_position_bias": True, "layer_scale_init_value": 0.5}
_SWIN = {"image_size": 32, "patch_size": 2, "embed_dim": 16, "depths": [2, 2], "num_heads": [2, 4], "window_size": 4}
_CONVNEXT = {"hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 2, 1], "image_size": 64}
_RESNET = {"embedding_size": 8, "hidden_sizes": [16, 24, 32, 40], "depths": [1, 1, 2, 1]}
_PVT = {"hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 1, 1], "num_attention_heads": [1, 2, 3, 4]}
_MOBILEVIT = {
    "image_size": 64, "hidden_sizes": [16, 24, 32], "neck_hidden_sizes": [8, 8, 16, 16, 24, 24, 32],
}  # fmt: skip
_MOBILEVITV2 = {"image_size": 64, "width_multiplier": 0.25, "n_attn_blocks": [1, 1, 1], "aspp_out_channels": 16}
_MOBILENET = {"image_size": 32, "depth_multiplier": 0.25}
_SEGFORMER = {
    "hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 1, 1], "num_attention_heads": [1, 2, 3, 4],
    "decoder_hidden_size": 16,
}  # fmt: skip
_HGNET = {
    "embedding_size": 8, "hidden_sizes": [16, 24, 32, 40], "depths": [1, 1, 1, 1], "stem_channels": [3, 8, 8],
    "stage_in_channels": [8, 16, 24, 32], "stage_mid_channels": [8, 8, 8, 8], "stage_out_channels": [16, 24, 32, 40],
    "stage_num_blocks": [1, 1, 1, 1], "stage_numb_of_layers": [2, 2, 2, 2],
}  # fmt: skip
_EFFICIENTNET = {
    "image_size": 64, "width_coefficient": 0.25, "depth_coefficient": 0.3, "hidden_dim": 320,
    "num_block_repeats": [1, 1, 1, 1, 1, 1, 1],
}  # fmt: skip
_LEVIT = {
    "image_size": 64, "hidden_sizes": [16, 24, 32], "num_attention_heads": [2, 3, 4], "depths": [1, 1, 1],
    "key_dim": [4, 4, 4],
}  # fmt: skip
_CVT = {"embed_dim": [8, 16, 24], "num_heads": [1, 2, 3], "depth": [1, 2, 3]}
_TEXTNET = {"stem_out_channels": 8, "hidden_sizes": [8, 8, 16, 24, 32], "image_size": [64, 64]}
_FOCALNET = {
    "image_size": 32, "patch_size": 2, "embed_dim": 8, "hidden_sizes": [16, 24], "depths": [1, 1],
    "focal_levels": [2, 2], "focal_windows": [3, 3],
}  # fmt: skip
_HIERA = {
    "embed_dim": 8, "image_size": [64, 64], "depths": [1, 1, 2, 1], "num_heads": [1, 2, 2, 4],
    "masked_unit_size": [8, 8],
}  # fmt: skip

_TEXT = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
_CLIP = {
    "text_config": {**_TEXT, "projection_dim": 24, "max_position_embeddings": 32},
    "vision_config": {**_VIT, "projection_dim": 24},
    "projection_dim": 24,
}
_SIGLIP = {"text_config": {**_TEXT, "projection_size": 32, "max_position_embeddings": 64}, "vision_config": _VIT}
_SIGLIP2 = {
    "text_config": _SIGLIP["text_config"],
    "vision_config": {**_NARROW, "patch_size": 8, "num_patches": 16},
}
_CLIP_IMAGES = _cropped("CLIP", 32, 32)
_SIGLIP_IMAGES = _square("Siglip", 32)

_DETR = {
    "use_timm_backbone": False, "use_pretrained_backbone": False, "backbone": None,
    "backbone_config": {"model_type": "resnet", **_RESNET, "out_features": ["stage4"]},
    "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "num_queries": 12,
}  # fmt: skip
_DETR_IMAGES = {"size": {"shortest_edge": 48, "longest_edge": 80}}
_PADDED = Processor(
    name="DeformableDetr", settings={**_DETR_IMAGES, "pad_size": {"height": 80, "width": 80}}
)  # its graph has one size
_STAGES = ["stage2", "stage3", "stage4"]
_RT_DETR = {
    "encoder_hidden_dim": 32, "encoder_in_channels": [24, 32, 40], "encoder_ffn_dim": 64,
    "encoder_attention_heads": 4, "d_model": 32, "num_queries": 12, "decoder_in_channels": [32, 32, 32],
    "decoder_ffn_dim": 64, "decoder_layers": 2, "decoder_attention_heads": 4, "num_denoising": 0,
    "hidden_expansion": 0.5, "with_box_refine": True,
}  # fmt: skip
_RT_RESNET = {"model_type": "rt_detr_resnet", **_RESNET, "out_features": _STAGES}
_DEFORMABLE = {
    **_DETR, "backbone_config": {"model_type": "resnet", **_RESNET, "out_features": _STAGES},
    "num_feature_levels": 3, "disable_custom_kernels": True,
}  # fmt: skip
_FOUR = [1, 2, 3, 4]
_SEGMENTING_BEIT = {
    **_BEIT, "num_hidden_layers": 4, "image_size": 64, "patch_size": 16, "pool_scales": [1, 2],
    "use_auxiliary_head": False,
}  # fmt: skip

_VIT_IMAGES = _square("ViT", 32)
_DEIT_IMAGES = _square("DeiT", 38, crop_size={"height": 32, "width": 32})
_BIT_28 = _cropped("Bit", 32, 28, **_IMAGENET)
_CONVNEXT_IMAGES = _shortest("ConvNext", 64, **_IMAGENET)
_MOBILEVIT_IMAGES = _cropped("MobileViT", 72, 64)
_DINOV3_IMAGES = _square("DINOv3ViT", 32, do_resize=True, do_rescale=True, do_normalize=True, **_IMAGENET)
_BEIT_CROPPED = _square("Beit", 36, do_center_crop=True, crop_size={"height": 32, "width": 32})
_BEIT_IMAGES = _square("Beit", 32)
_SWIN_IMAGES = _square("ViT", 32, **_IMAGENET)

_ROWS: dict[str, dict[str, Row]] = {
    CLASSIFICATION: {
        "vit": Row(config=_VIT, processor=_VIT_IMAGES),
        "deit": Row(config=_VIT, processor=_DEIT_IMAGES, model="DeiTForImageClassification"),
        "beit": Row(config=_BEIT, processor=_BEIT_CROPPED),
        "swin": Row(config=_SWIN, processor=_SWIN_IMAGES),
        "swinv2": Row(config=_SWIN, processor=_SWIN_IMAGES),
        "convnext": Row(config=_CONVNEXT, processor=_CONVNEXT_IMAGES),
        "convnextv2": Row(config=_CONVNEXT, processor=_CONVNEXT_IMAGES),
        "resnet": Row(config=_RESNET, processor=_CONVNEXT_IMAGES),
        "mobilevit": Row(config=_MOBILEVIT, processor=_MOBILEVIT_IMAGES),
        "mobilevitv2": Row(config=_MOBILEVITV2, processor=_MOBILEVIT_IMAGES),
        "dinov2": Row(config=_DINO, processor=_BIT_28),
        "dinov2_with_registers": Row(config=_DINO, processor=_BIT_28),
        "regnet": Row(
            config={**_RESNET, "hidden_sizes": [16, 24, 32, 40], "groups_width": 8}, processor=_CONVNEXT_IMAGES
        ),
        "mobilenet_v1": Row(config=_MOBILENET, processor=_cropped("MobileNetV1", 40, 32)),
        "mobilenet_v2": Row(config=_MOBILENET, processor=_cropped("MobileNetV2", 40, 32)),
        "efficientnet": Row(config=_EFFICIENTNET, processor=_square("EfficientNet", 64, **_IMAGENET)),
        "levit": Row(config=_LEVIT, processor=_cropped("Levit", 64, 64), model="LevitForImageClassification"),
        "cvt": Row(config=_CVT, processor=_CONVNEXT_IMAGES),
        "poolformer": Row(
            config={**_CONVNEXT, "layer_scale_init_value": 0.5}, processor=_cropped("PoolFormer", 64, 64)
        ),
        "pvt": Row(config={**_PVT, "image_size": 64}, processor=_square("Pvt", 64)),
        "pvt_v2": Row(config={**_PVT, "image_size": 64}, processor=_square("Pvt", 64)),
        "focalnet": Row(config=_FOCALNET, processor=_cropped("Bit", 32, 32, **_IMAGENET)),
        "hiera": Row(config=_HIERA, processor=_cropped("Bit", 72, 64, **_IMAGENET)),
        "vit_msn": Row(config=_VIT, processor=_VIT_IMAGES),
        "data2vec-vision": Row(config=_BEIT, processor=_BEIT_IMAGES),
        "bit": Row(config={**_RESNET, "num_groups": 8}, processor=_cropped("Bit", 64, 64)),
        "segformer": Row(config=_SEGFORMER, processor=_square("Segformer", 64)),
        "siglip": Row(config={"vision_config": _VIT, "text_config": _SIGLIP["text_config"]}, processor=_SIGLIP_IMAGES),
        "clip": Row(config=_CLIP, processor=_CLIP_IMAGES),
        "swiftformer": Row(
            config={"image_size": 64, "depths": [1, 1, 1, 1], "embed_dims": [8, 16, 24, 32]},
            processor=_square("ViT", 64, **_IMAGENET),
        ),
        "textnet": Row(config=_TEXTNET, processor=_shortest("TextNet", 64)),
        "hgnet_v2": Row(config=_HGNET, processor=_square("RTDetr", 64)),
        "ijepa": Row(config=_VIT, processor=_VIT_IMAGES),
    },
    FEATURES: {
        "vit": Row(config=_VIT, processor=_VIT_IMAGES),
        "dinov2": Row(config=_DINO, processor=_BIT_28),
        "dinov2_with_registers": Row(config=_DINO, processor=_BIT_28),
        "convnext": Row(config=_CONVNEXT, processor=_CONVNEXT_IMAGES),
        "swin": Row(config=_SWIN, processor=_SWIN_IMAGES),
        "resnet": Row(config=_RESNET, processor=_CONVNEXT_IMAGES),
        "beit": Row(config=_BEIT, processor=_BEIT_IMAGES),
        "deit": Row(config=_VIT, processor=_DEIT_IMAGES),
        "clip": Row(config=_CLIP, processor=_CLIP_IMAGES, tokenizer="clip"),
        "clip_vision_model": Row(
            config=_CLIP["vision_config"], processor=_CLIP_IMAGES, model="CLIPVisionModelWithProjection"
        ),
        "siglip": Row(config=_SIGLIP, processor=_SIGLIP_IMAGES, tokenizer="siglip"),
        "siglip_vision_model": Row(config=_VIT, processor=_SIGLIP_IMAGES, model="SiglipVisionModel"),
        "vit_mae": Row(config={**_VIT, "mask_ratio": 0.0}, processor=_VIT_IMAGES),
        "vit_msn": Row(config=_VIT, processor=_VIT_IMAGES),
        "dinov3_vit": Row(config=_VIT, processor=_DINOV3_IMAGES),
    },
    TEXTS: {
        "clip": Row(config=_CLIP, processor=_CLIP_IMAGES, tokenizer="clip"),
        "clip_text_model": Row(
            config=_CLIP["text_config"], processor=None, tokenizer="clip", model="CLIPTextModelWithProjection"
        ),
        "siglip": Row(config=_SIGLIP, processor=_SIGLIP_IMAGES, tokenizer="siglip"),
        "siglip_text_model": Row(
            config=_SIGLIP["text_config"], processor=None, tokenizer="siglip", model="SiglipTextModel"
        ),
    },
    ZERO_SHOT: {
        "clip": Row(config=_CLIP, processor=_CLIP_IMAGES, tokenizer="clip"),
        "siglip": Row(config=_SIGLIP, processor=_SIGLIP_IMAGES, tokenizer="siglip"),
        "chinese_clip": Row(
            config=_CLIP, processor=_cropped("ChineseCLIP", 32, 32), tokenizer="bert"
        ),
        "altclip": Row(
            config={**_CLIP, "text_config": {**_TEXT, "project_dim": 24, "max_position_embeddings": 66}},
            processor=_CLIP_IMAGES,
            tokenizer="xlm_roberta",
        ),
        "siglip2": Row(
            config=_SIGLIP2, processor=Processor(name="Siglip2", settings={"patch_size": 8, "max_num_patches": 16}),
            tokenizer="siglip2",
        ),
        "metaclip_2": Row(config=_CLIP, processor=_CLIP_IMAGES, tokenizer="xlm_roberta"),
    },
    DETECTION: {
        "detr": Row(config=_DETR, processor=Processor(name="Detr", settings=_DETR_IMAGES)),
        "yolos": Row(
            config={**_NARROW, "image_size": [48, 64], "patch_size": 8, "num_detection_tokens": 12},
            processor=Processor(name="Yolos", settings=_DETR_IMAGES),
        ),
        "rt_detr": Row(config={**_RT_DETR, "backbone_config": _RT_RESNET}, processor=_square("RTDetr", 64)),
        "rt_detr_v2": Row(config={**_RT_DETR, "backbone_config": _RT_RESNET}, processor=_square("RTDetr", 64)),
        "conditional_detr": Row(config=_DETR, processor=Processor(name="ConditionalDetr", settings=_DETR_IMAGES)),
        "deformable_detr": Row(config=_DEFORMABLE, processor=_PADDED),
        "table-transformer": Row(config=_DETR, processor=Processor(name="Detr", settings=_DETR_IMAGES)),
    },
    SEGMENTATION: {
        "segformer": Row(config=_SEGFORMER, processor=_square("Segformer", 64)),
        "beit": Row(config={**_SEGMENTING_BEIT, "out_indices": _FOUR}, processor=_square("Beit", 64)),
        "mobilevit": Row(config={**_MOBILEVIT, "aspp_out_channels": 16}, processor=_MOBILEVIT_IMAGES),
        "mobilevitv2": Row(config=_MOBILEVITV2, processor=_MOBILEVIT_IMAGES),
        "dpt": Row(
            config={
                **_VIT, "num_hidden_layers": 4, "image_size": 64, "patch_size": 16, "fusion_hidden_size": 16,
                "backbone_out_indices": [0, 1, 2, 3], "neck_hidden_sizes": [8, 16, 24, 32],
            },
            processor=_square("DPT", 64),
        ),
        "upernet": Row(
            config={
                "backbone_config": {
                    "model_type": "convnext", **_CONVNEXT, "out_features": ["stage1", "stage2", "stage3", "stage4"]
                },
                "hidden_size": 16, "pool_scales": [1, 2], "use_auxiliary_head": False, "auxiliary_in_channels": 24,
            },
            processor=_square("Segformer", 64),
        ),
        "data2vec-vision": Row(config={**_SEGMENTING_BEIT, "out_indices": [0, 1, 2, 3]}, processor=_square("Beit", 64)),
        "mobilenet_v2": Row(config={**_MOBILENET, "image_size": 64}, processor=_cropped("MobileNetV2", 72, 64)),
    },
}  # fmt: skip
"""Rows by task and by `model_type`."""

ROWS = {f"{model_type}/{task}": row for task, rows in _ROWS.items() for model_type, row in rows.items()}
