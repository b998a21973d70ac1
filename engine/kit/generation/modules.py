"""Torch modules that generate text: one pass without a KV cache for validation, and with a past for export."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from engine.errors import StepError
from engine.kit.generation import caches
from engine.kit.generation.caches import Layer
from engine.kit.onnx import graphs
from engine.kit.onnx.onnx_files import Input

if TYPE_CHECKING:
    import torch

    Tensors = dict[str, torch.Tensor]

DECODER_TOKENS = "decoder_input_ids"
_ANSWER = 12
"""The number of tokens of the original's own answer that an encoder-decoder model's decoder reads in validation."""


def whole(model: Any) -> torch.nn.Module:
    """Return a torch module in eval mode that runs the model in one pass without a KV cache, for validation.

    The module takes `input_ids` and `attention_mask`, both [batch, sequence], and returns `logits` [batch, sequence,
    vocabulary]. The position of a token is counted from the attention mask, as in `generate()` of transformers. An
    encoder-decoder model has a third input, `decoder_input_ids` [batch, decoder sequence], and the decoder gives logits
    for each position of `decoder_input_ids`. `input_specs` leaves `decoder_input_ids` out, because the function
    `own_answer` computes `decoder_input_ids`.
    """
    tokens = _integers(("input_ids", "attention_mask"), ("batch", "sequence"))
    if not model.config.is_encoder_decoder:
        return _generating(model, _continued, tokens, ("logits",))
    decoder_tokens = _integers((DECODER_TOKENS,), ("batch", "target"))
    module = _generating(model, _answered, {**tokens, **decoder_tokens}, ("logits",))
    module.input_specs = tokens
    return module


def with_past(whole: torch.nn.Module) -> dict[str, torch.nn.Module]:
    """Return the modules to export, in eval mode: the artifact's folder for a module's graph -> the torch module.

    Each module describes its inputs in `input_specs` and its outputs in `output_specs`. Raises StepError for a model
    whose past is anything but keys and values.
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
        before = _carried(graphs.PAST, layers, "past_sequence")
        after = _carried(graphs.PRESENT, layers, "total_sequence")
        return {
            graphs.WHOLE: _generating(model, _decoded, {**rows, **before}, (), output_specs={"logits": logits, **after})
        }
    encoded = ("batch", "encoder_sequence")
    cross = _carried(graphs.PRESENT, layers, "encoder_sequence", graphs.CROSS)
    encoder = _generating(model, _encoded, _integers(("input_ids", "attention_mask"), encoded), (), output_specs=cross)
    before = {
        **_carried(graphs.PAST, layers, "encoder_sequence", graphs.CROSS),
        **_carried(graphs.PAST, layers, "past_sequence", graphs.OWN),
    }
    after = _carried(graphs.PRESENT, layers, "total_sequence", graphs.OWN)
    rows = {**ids, **_integers(("encoder_attention_mask",), encoded)}
    decoder = _generating(model, _decoded_behind, {**rows, **before}, (), output_specs={"logits": logits, **after})
    return {graphs.ENCODER: encoder, graphs.DECODER: decoder}


def generates(module: torch.nn.Module) -> bool:
    """Whether the torch module was made by `whole` or `with_past`, which make modules of models that generate text."""
    return getattr(module, "generates", False) is True


def by_position(
    model: Any, answer: Callable[[Any, Tensors], Mapping[str, torch.Tensor]], specs: Mapping[str, Input], outputs: Any
) -> torch.nn.Module:
    """Return a torch module in eval mode that takes and returns tensors by position, as ONNX exporters require.

    The function `answer` takes `model` and the inputs by name, and returns the outputs by name. The module has the
    attributes `model`, `input_specs`, and the names of its inputs and outputs in order: `input_names`, `output_names`.
    """
    module: torch.nn.Module = _class()(model, answer, dict(specs), tuple(outputs))
    return module.eval()


def own_answer(whole: torch.nn.Module, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Return the first tokens of the model's own answer, int64 [batch, tokens], to `ids` and `mask`, [batch, sequence].

    Each token is the one with the largest logit, so that the answer is the same in every run.
    """
    import torch

    model = whole.model
    limit = getattr(model.config, "max_position_embeddings", None) or _ANSWER + 1
    with torch.inference_mode():
        states = model.get_encoder()(input_ids=ids, attention_mask=mask)
        tokens = torch.full((len(ids), 1), start(model), dtype=torch.long)
        for _ in range(min(_ANSWER, limit - 1)):
            answer = model(encoder_outputs=states, attention_mask=mask, decoder_input_ids=tokens, use_cache=False)
            tokens = torch.cat([tokens, answer.logits[:, -1:].argmax(-1)], dim=1)
    return tokens


def start(model: Any) -> int:
    """Return the id of the token that a decoder begins with, from the model's configs; 0 where none has it."""
    ids = (getattr(config, "decoder_start_token_id", None) for config in (model.generation_config, model.config))
    return next((token for token in ids if isinstance(token, int)), 0)


def _continued(model: Any, tensors: Tensors) -> Tensors:
    mask = tensors["attention_mask"]
    positions = (mask.cumsum(-1) - 1).clamp(min=0)
    return {"logits": model(**tensors, **_positions(model, positions), use_cache=False).logits}


def _answered(model: Any, tensors: Tensors) -> Tensors:
    return {"logits": model(**tensors, use_cache=False).logits}


def _decoded(model: Any, tensors: Tensors) -> Tensors:
    own = caches.filled(tensors, graphs.PAST)
    answer = model(
        input_ids=tensors["input_ids"],
        attention_mask=tensors["attention_mask"],
        use_cache=True,
        **caches.argument(model, own),
        **_positions(model, tensors["position_ids"]),
    )
    return {"logits": answer.logits, **caches.tensors(own, graphs.PRESENT)}


def _encoded(model: Any, tensors: Tensors) -> Tensors:
    """Run the decoder on one token, and return the keys and values that cross-attention gets from the encoder.

    The decoder also computes logits and its own past. The exported graph has no outputs for logits and the decoder's
    past, so the exporter leaves out the operators that compute only logits and the past.
    """
    cross = caches.empty()
    both = caches.both(caches.empty(), cross)
    first = tensors["input_ids"][:, :1]
    model(**tensors, decoder_input_ids=first, use_cache=True, **caches.argument(model, both))
    return caches.tensors(cross, graphs.PRESENT, graphs.CROSS)


def _decoded_behind(model: Any, tensors: Tensors) -> Tensors:
    cross, own = (caches.filled(tensors, graphs.PAST, part) for part in (graphs.CROSS, graphs.OWN))
    mask = tensors["encoder_attention_mask"]
    # The model does not read the encoder's states: their keys and values are in the cache already.
    unread = next(iter(cross.layers)).keys.new_zeros(*mask.shape, model.config.hidden_size)
    answer = model(
        encoder_outputs=(unread,),
        attention_mask=mask,
        decoder_input_ids=tensors["input_ids"],
        use_cache=True,
        **caches.argument(model, caches.both(own, cross)),
    )
    return {"logits": answer.logits, **caches.tensors(own, graphs.PRESENT, graphs.OWN)}


def _positions(model: Any, positions: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return the keyword argument `position_ids`; {} for a model with relative positions, which has none."""
    return {"position_ids": positions} if caches.takes(model, "position_ids") else {}


def _carried(prefix: str, layers: list[Layer], length: str, part: str | None = None) -> dict[str, Input]:
    """Return the name of each layer's keys and values -> their description, float32 [batch, heads, `length`, size]."""
    sizes = [(layer.heads, size) for layer in layers for size in (layer.key, layer.value)]
    names = graphs.past_names(prefix, len(layers), part)
    return {
        name: Input(name, "float32", ("batch", heads, length, size))
        for name, (heads, size) in zip(names, sizes, strict=True)
    }


def _integers(names: tuple[str, ...], shape: tuple[str, str]) -> dict[str, Input]:
    """Return each name in `names` -> the description of an int64 tensor with the name and the shape `shape`."""
    return {name: Input(name, "int64", shape) for name in names}


def _generating(
    model: Any,
    answer: Callable[[Any, Tensors], Tensors],
    input_specs: Mapping[str, Input],
    outputs: tuple[str, ...],
    *,
    output_specs: Mapping[str, Input] | None = None,
) -> torch.nn.Module:
    """Return a torch module that generates text; the names of its outputs are `outputs` or those in `output_specs`."""
    module = by_position(model, answer, input_specs, outputs or tuple(output_specs or ()))
    module.output_specs = output_specs
    module.generates = True
    return module


@cache
def _class() -> Any:
    """Return the class `NamedTensors`, defined in a function because importing torch is slow."""
    import torch

    class NamedTensors(torch.nn.Module):  # type: ignore[misc]
        """A torch module that takes and returns tensors by position, made by `by_position`."""

        def __init__(self, model: Any, answer: Any, input_specs: dict[str, Input], outputs: tuple[str, ...]) -> None:
            super().__init__()
            self.model = model
            self.answer = answer
            self.input_specs = input_specs
            self.input_names = tuple(input_specs)
            self.output_names = outputs

        def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
            answers = self.answer(self.model, dict(zip(self.input_names, tensors, strict=True)))
            missing = [name for name in self.output_names if name not in answers]
            if missing:
                raise StepError(
                    f"{type(self.model).__name__} does not give {', '.join(missing)}",
                    [f"it gives: {', '.join(answers)}"],
                    "choose another task (`task:` under `model:`), or export the model to ONNX yourself",
                )
            return tuple(answers[name] for name in self.output_names)

    return NamedTensors
