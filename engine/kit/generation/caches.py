"""Caches of transformers: keys and values put in, taken out by name, and what a model's own look like."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from engine.errors import StepError
from engine.kit.onnx import past

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Layer:
    """What one layer carries from call to call: heads, and the numbers that each has in a key and in a value."""

    heads: int
    key: int
    value: int


def empty() -> Any:
    """Return a cache that fills itself with as many layers as a model has, every token kept."""
    from transformers.cache_utils import Cache

    return Cache(layer_class_to_replicate=_held())


def filled(tensors: Mapping[str, torch.Tensor], prefix: str, part: str | None = None) -> Any:
    """Return a cache of the keys and values among `tensors`, each [batch, heads, tokens, size]."""
    made, layer = empty(), 0
    while (pair := past.names(prefix, layer + 1, part)[-2:])[0] in tensors:
        made.update(*(tensors[name] for name in pair), layer)
        layer += 1
    return made


def both(own: Any, cross: Any) -> Any:
    """Return the cache of a decoder behind an encoder; keys and values of the encoder's that are there are final."""
    from transformers.cache_utils import EncoderDecoderCache

    made = EncoderDecoderCache(own, cross)
    made.is_updated = dict.fromkeys(range(len(cross.layers)), True)
    return made


def tensors(made: Any, prefix: str, part: str | None = None) -> dict[str, torch.Tensor]:
    """Return the keys and values of a cache by name."""
    held = [tensor for layer in made.layers for tensor in (layer.keys, layer.values)]
    return dict(zip(past.names(prefix, len(made.layers), part), held, strict=True))


def takes(model: Any, argument: str) -> bool:
    """Whether a model's forward has an argument of this name."""
    return argument in inspect.signature(model.forward).parameters


def layers(model: Any) -> list[Layer]:
    """Return what the layers of a decoder carry, as one pass over two tokens leaves it.

    The model is asked, not its config, where every family has names of its own. Raises StepError for one that carries
    something else, or nothing.
    """
    import torch

    ids, own = torch.zeros((1, 2), dtype=torch.long), empty()
    behind = model.config.is_encoder_decoder
    if not takes(model, "past_key_values"):
        raise _other(model, "it takes no past_key_values")
    given = {"decoder_input_ids": ids, "past_key_values": both(own, empty())} if behind else {"past_key_values": own}
    try:
        with torch.inference_mode():
            model(input_ids=ids, attention_mask=torch.ones_like(ids), use_cache=True, **given)
        found = [Layer(each.keys.shape[1], each.keys.shape[3], each.values.shape[3]) for each in own.layers]
    except (AttributeError, IndexError, TypeError, ValueError) as error:
        raise _other(model, f"{type(error).__name__}: {error}".splitlines()[0]) from error
    if not found:
        raise _other(model, "it leaves its cache empty")
    return found


def _other(model: Any, why: str) -> StepError:
    return StepError(
        f"{type(model).__name__} does not carry keys and values from token to token, and cannot be exported",
        [why],
        "models that generate must be attention throughout, as GPT-2, OPT, Llama, T5 and BART are",
    )


@cache
def _held() -> Any:
    """Return the class of a cache's layers; made late because its base is that of transformers."""
    from transformers.cache_utils import DynamicLayer

    class Held(DynamicLayer):  # type: ignore[misc]
        """A layer whose first keys and values are not joined to nothing, which an exporter would write down."""

        def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:  # noqa: ARG002
            self.dtype, self.device = key_states.dtype, key_states.device
            self.is_initialized = True

        def update(
            self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **options: Any
        ) -> tuple[torch.Tensor, torch.Tensor]:
            if self.is_initialized:
                joined: tuple[torch.Tensor, torch.Tensor] = super().update(key_states, value_states, *args, **options)
                return joined
            self.lazy_initialization(key_states, value_states)
            self.keys, self.values = key_states, value_states
            return key_states, value_states

    return Held
