"""Towers: a model's embeddings of images and of texts, and the scores of images with texts that they give."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

    Tensors = Mapping[str, torch.Tensor]


def image_embeds(model: Any, tensors: Tensors, **options: object) -> torch.Tensor:
    """Return the embeddings of images [batch, width], projected where the model has a projection."""
    return _embeds(model, "image", {**tensors, **options})


def text_embeds(model: Any, tensors: Tensors) -> dict[str, torch.Tensor]:
    """Return `text_embeds` [batch, width], projected where the model has a projection."""
    return {"text_embeds": _embeds(model, "text", tensors)}


def logits_per_image(model: Any, tensors: Tensors, **options: object) -> dict[str, torch.Tensor]:
    """Return `logits_per_image` [batch, texts]: the scores of each image with the texts of its own row.

    `input_ids` and `attention_mask` are [batch, texts, sequence]. The model itself would score each image with the
    texts of all rows, so that a server could not join the rows of several clients.
    """
    pixels = {"pixel_values": tensors["pixel_values"]}
    tokens = {name: tensor.flatten(0, 1) for name, tensor in tensors.items() if name not in pixels}
    images, texts = image_embeds(model, pixels, **options), _embeds(model, "text", tokens)
    images, texts = (each / each.norm(dim=-1, keepdim=True) for each in (images, texts))
    rows = texts.reshape(*tensors["input_ids"].shape[:2], texts.shape[-1])
    scores = (rows @ images[:, :, None])[:, :, 0] * model.logit_scale.exp()
    bias = getattr(model, "logit_bias", None)
    return {"logits_per_image": scores if bias is None else scores + bias}


def _embeds(model: Any, kind: str, arguments: Mapping[str, object]) -> torch.Tensor:
    features = getattr(model, f"get_{kind}_features", None)
    answers = model(**arguments) if features is None else features(**arguments)
    pooled: torch.Tensor = answers.get(f"{kind}_embeds", answers.get("pooler_output"))
    return pooled
