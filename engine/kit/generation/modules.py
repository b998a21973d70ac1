"""Models that generate text as modules: whole, as validation asks them, and with their past, as they are exported."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from engine.kit.generation import caches
from engine.kit.generation.caches import Layer
from engine.kit.onnx import graphs, past
from engine.kit.onnx.onnx_files import Input

if TYPE_CHECKING:
    import torch

    Tensors = dict[str, torch.Tensor]

DECODER_TOKENS = "decoder_input_ids"
_TEACHER = 12
"""How many tokens of its own answer a model with an encoder is asked about."""


def whole(model: Any) -> torch.nn.Module:
    """Return the model as one pass without a cache, the way validation sees it, in eval mode.

    `input_ids`, `attention_mask` [batch, sequence] -> `logits` [batch, sequence, vocabulary]; positions are counted
    from the mask, as `generate()` of transformers does. Behind an encoder the logits are those of a third input,
    `decoder_input_ids` [batch, decoder sequence], which `taught` makes: `wanted` leaves it out.
    """
    tokens = _integers(("input_ids", "attention_mask"), ("batch", "sequence"))
    if not model.config.is_encoder_decoder:
        return _module(model, _continued, tokens, ("logits",))
    made = _module(model, _answered, {**tokens, **_integers((DECODER_TOKENS,), ("batch", "target"))}, ("logits",))
    made.wanted = tokens
    return made


def with_past(whole: torch.nn.Module) -> dict[str, torch.nn.Module]:
    """Return what is exported of a model: a module for each folder of the artifact, in eval mode.

    Beside `wanted`, the axes of its inputs, each has `given`, those of its outputs. Raises StepError for a model that
    carries anything else than keys and values from call to call.
    """
    model, layers = whole.model, caches.layers(whole.model)
    ids = _integers(("input_ids",), ("batch", "sequence"))
    logits = Input("logits", "float32", ("batch", "sequence", model.config.get_text_config(decoder=True).vocab_size))
    if not model.config.is_encoder_decoder:
        rows = {
            **ids,
            **_integers(("attention_mask",), ("batch", "total_sequence")),
            **_integers(("position_ids",), ("batch", "sequence")),
        }
        before, after = _carried(past.PAST, layers, "past_sequence"), _carried(past.PRESENT, layers, "total_sequence")
        return {graphs.WHOLE: _module(model, _decoded, {**rows, **before}, (), given={"logits": logits, **after})}
    seen = ("batch", "encoder_sequence")
    cross = _carried(past.PRESENT, layers, "encoder_sequence", past.CROSS)
    encoder = _module(model, _encoded, _integers(("input_ids", "attention_mask"), seen), (), given=cross)
    before = {
        **_carried(past.PAST, layers, "encoder_sequence", past.CROSS),
        **_carried(past.PAST, layers, "past_sequence", past.OWN),
    }
    after = _carried(past.PRESENT, layers, "total_sequence", past.OWN)
    rows = {**ids, **_integers(("encoder_attention_mask",), seen)}
    decoder = _module(model, _decoded_behind, {**rows, **before}, (), given={"logits": logits, **after})
    return {graphs.ENCODER: encoder, graphs.DECODER: decoder}


def is_one(module: torch.nn.Module) -> bool:
    """Whether a module is of those that this file makes."""
    return isinstance(module, _class())


def taught(whole: torch.nn.Module, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Return tokens of a decoder, int64 [batch, tokens], for `ids` and `mask`, [batch, sequence]: those of its answer.

    They are chosen greedily and by nothing but the logits, so that they are the same in every run.
    """
    import torch

    model = whole.model
    limit = getattr(model.config, "max_position_embeddings", None) or _TEACHER + 1
    with torch.inference_mode():
        seen = model.get_encoder()(input_ids=ids, attention_mask=mask)
        tokens = torch.full((len(ids), 1), start(model), dtype=torch.long)
        for _ in range(min(_TEACHER, limit - 1)):
            answer = model(encoder_outputs=seen, attention_mask=mask, decoder_input_ids=tokens, use_cache=False)
            tokens = torch.cat([tokens, answer.logits[:, -1:].argmax(-1)], dim=1)
    return tokens


def start(model: Any) -> int:
    """Return the token that a decoder begins with: the one that the checkpoint names, else its first."""
    said = (getattr(config, "decoder_start_token_id", None) for config in (model.generation_config, model.config))
    return next((token for token in said if isinstance(token, int)), 0)


def _continued(model: Any, tensors: Tensors) -> Tensors:
    mask = tensors["attention_mask"]
    positions = (mask.cumsum(-1) - 1).clamp(min=0)
    return {"logits": model(**tensors, **_positions(model, positions), use_cache=False).logits}


def _answered(model: Any, tensors: Tensors) -> Tensors:
    return {"logits": model(**tensors, use_cache=False).logits}


def _decoded(model: Any, tensors: Tensors) -> Tensors:
    own = caches.filled(tensors, past.PAST)
    answer = model(
        input_ids=tensors["input_ids"],
        attention_mask=tensors["attention_mask"],
        past_key_values=own,
        use_cache=True,
        **_positions(model, tensors["position_ids"]),
    )
    return {"logits": answer.logits, **caches.tensors(own, past.PRESENT)}


def _encoded(model: Any, tensors: Tensors) -> Tensors:
    """Run the encoder, and the decoder on one token for the sake of the keys and values that it makes of the encoder's.

    All else that the decoder computes is asked for by no output, and is left out of the graph.
    """
    cross = caches.empty()
    both = caches.both(caches.empty(), cross)
    first = tensors["input_ids"][:, :1]
    model(**tensors, decoder_input_ids=first, past_key_values=both, use_cache=True)
    return caches.tensors(cross, past.PRESENT, past.CROSS)


def _decoded_behind(model: Any, tensors: Tensors) -> Tensors:
    cross, own = (caches.filled(tensors, past.PAST, part) for part in (past.CROSS, past.OWN))
    mask = tensors["encoder_attention_mask"]
    # What the encoder said is not looked at: the keys and values that were made of it are there already.
    unread = next(iter(cross.layers)).keys.new_zeros(*mask.shape, model.config.hidden_size)
    answer = model(
        encoder_outputs=(unread,),
        attention_mask=mask,
        decoder_input_ids=tensors["input_ids"],
        past_key_values=caches.both(own, cross),
        use_cache=True,
    )
    return {"logits": answer.logits, **caches.tensors(own, past.PRESENT, past.OWN)}


def _positions(model: Any, positions: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return the argument for positions; none for a model that only knows distances."""
    return {"position_ids": positions} if caches.takes(model, "position_ids") else {}


def _carried(prefix: str, layers: list[Layer], length: str, part: str | None = None) -> dict[str, Input]:
    """Return keys and values of all layers, [batch, heads, length, size]."""
    sizes = [(layer.heads, size) for layer in layers for size in (layer.key, layer.value)]
    names = past.names(prefix, len(layers), part)
    return {
        name: Input(name, "float32", ("batch", heads, length, size))
        for name, (heads, size) in zip(names, sizes, strict=True)
    }


def _integers(names: tuple[str, ...], shape: tuple[str, str]) -> dict[str, Input]:
    return {name: Input(name, "int64", shape) for name in names}


def _module(
    model: Any,
    answer: Callable[[Any, Tensors], Tensors],
    wanted: Mapping[str, Input],
    outputs: tuple[str, ...],
    *,
    given: Mapping[str, Input] | None = None,
) -> torch.nn.Module:
    made = _class()(model, answer, dict(wanted), outputs or tuple(given or ()))
    made.given = given
    return made.eval()


@cache
def _class() -> Any:
    """Return the class of modules; made late because its base is torch's."""
    import torch

    class Asked(torch.nn.Module):  # type: ignore[misc]
        """A model behind a function, which takes and returns tensors by position."""

        def __init__(
            self, model: Any, answer: Callable[[Any, Tensors], Tensors], wanted: dict[str, Input], outputs: Any
        ) -> None:
            super().__init__()
            self.model = model
            self.answer = answer
            self.wanted = wanted
            self.input_names = tuple(wanted)
            self.output_names = outputs

        def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
            answers = self.answer(self.model, dict(zip(self.input_names, tensors, strict=True)))
            return tuple(answers[name] for name in self.output_names)

    return Asked
