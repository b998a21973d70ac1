"""Last end token: encoder-decoder models that classify a text by the state of its last end token, such as BART."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


def pools(model: Any) -> bool:
    """Whether a model classifies a text by the decoder's state at the text's last end token."""
    return bool(model.config.is_encoder_decoder) and hasattr(model, "classification_head")


def answer(model: Any, tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return `logits` [batch, classes], as the model's own `forward` computes them for each row alone.

    `forward` refuses a batch whose rows have different numbers of end tokens, such as a text beside a pair of texts. A
    graph that was traced from `forward` would not refuse such a batch, and would mix up its rows.
    """
    import torch

    ids = tensors["input_ids"]
    shifted = {"decoder_input_ids": model._shift_right(ids)} if hasattr(model, "_shift_right") else {}  # noqa: SLF001 - T5 has no public name for it
    states = model.base_model(**tensors, **shifted).last_hidden_state
    places = torch.arange(ids.shape[1], device=ids.device)
    last = torch.where(ids == model.config.eos_token_id, places, torch.zeros_like(places)).amax(dim=1)
    pooled = states[torch.arange(ids.shape[0], device=ids.device), last]
    return {"logits": model.classification_head(pooled)}
