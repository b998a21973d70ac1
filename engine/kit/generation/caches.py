"""Caches of transformers: fill a cache with keys and values, read them by name, and find a cache's shapes."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from engine.errors import StepError
from engine.kit.onnx import graphs
from engine.text import reasons

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Layer:
    """The shape of one decoder layer's past: the number of heads, and the vector size of a head's keys and values."""

    heads: int
    key: int
    value: int


def empty() -> Any:
    """Return an empty cache of transformers.

    The cache gets a layer for each layer of the model that writes into the cache, and drops no token.
    """
    from transformers.cache_utils import Cache

    return Cache(layer_class_to_replicate=_layer_class())


def filled(tensors: Mapping[str, torch.Tensor], prefix: str, part: str | None = None) -> Any:
    """Return a cache of transformers that holds the keys and values in `tensors`, each [batch, heads, tokens, size]."""
    cache, layer = empty(), 0
    key, value = graphs.past_names(prefix, 1, part)
    while key in tensors:
        cache.update(tensors[key], tensors[value], layer)
        layer += 1
        key, value = graphs.past_names(prefix, layer + 1, part)[-2:]
    return cache


def both(own: Any, cross: Any) -> Any:
    """Return the cache of an encoder-decoder model: the decoder's own keys and values, and those of cross-attention.

    The keys and values of cross-attention come from the encoder and stay unchanged during generation.
    """
    from transformers.cache_utils import EncoderDecoderCache

    cache = EncoderDecoderCache(own, cross)
    cache.is_updated = dict.fromkeys(range(len(cross.layers)), True)
    return cache


def tensors(cache: Any, prefix: str, part: str | None = None) -> dict[str, torch.Tensor]:
    """Return the name of each tensor of keys or values in a cache -> the tensor."""
    values = [tensor for layer in cache.layers for tensor in (layer.keys, layer.values)]
    return dict(zip(graphs.past_names(prefix, len(cache.layers), part), values, strict=True))


def takes(model: Any, argument: str) -> bool:
    """Whether a model's `forward` has the parameter `argument`."""
    return argument in inspect.signature(model.forward).parameters


def argument(model: Any, cache: Any) -> dict[str, Any]:
    """Return a cache as the keyword argument of a model's `forward`; {} for a model that takes none.

    The argument is called `past_key_values` up to transformers 5.23, and `cache` since transformers 5.24.
    """
    return {name: cache for name in ("cache", "past_key_values") if takes(model, name)}


def layers(model: Any) -> list[Layer]:
    """Run the model on two tokens, and return the shape of each decoder layer's past.

    The shapes of the past are not read from config.json, because each family of models names the fields differently.
    Raises StepError for a model whose past is anything but keys and values.
    """
    import torch

    ids, own = torch.zeros((1, 2), dtype=torch.long), empty()
    behind = model.config.is_encoder_decoder
    options = argument(model, both(own, empty()) if behind else own)
    if not options:
        raise _other(model, "it takes no cache of keys and values")
    if behind:
        options["decoder_input_ids"] = ids
    try:
        with torch.inference_mode():
            model(input_ids=ids, attention_mask=torch.ones_like(ids), use_cache=True, **options)
        shapes = [Layer(each.keys.shape[1], each.keys.shape[3], each.values.shape[3]) for each in own.layers]
    except Exception as error:  # a model with another kind of past fails anywhere
        raise _other(model, *reasons.facts(error)) from error
    if not shapes:
        raise _other(model, "it leaves its cache empty")
    return shapes


def _other(model: Any, *why: str) -> StepError:
    return StepError(
        f"{type(model).__name__} does not carry keys and values from token to token, and cannot be exported",
        why,
        "choose a model whose layers all use attention, such as GPT-2, OPT, Llama, T5 or BART",
    )


@cache
def _layer_class() -> Any:
    """Return the class `ExportedLayer`, defined in a function because importing transformers is slow."""
    from transformers.cache_utils import DynamicLayer

    class ExportedLayer(DynamicLayer):  # type: ignore[misc]
        """A layer of a cache that stores its first keys and values unchanged.

        The base class `DynamicLayer` concatenates the first keys and values with an empty tensor, and an exporter would
        write the useless Concat into the graph.
        """

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

    return ExportedLayer
