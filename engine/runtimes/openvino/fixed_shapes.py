"""Fixed shapes: profiles of one size each, for which a model is compiled apart, and the padding of inputs to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from engine.kit.inputs import token_rows
from engine.runtimes import axes, profiles
from engine.runtimes.triton_tensors import is_batch

if TYPE_CHECKING:
    import openvino

    from engine.kit.inputs.tokenizer import Tokenizer
    from engine.kit.onnx.onnx_files import Input
    from engine.recipe.values import Profile

_MASK = "attention_mask"
_PROBES = ((2, 5), (3, 7))
"""Two pairs of the number of rows and the number of tokens, from which the axes of an output are known."""


def is_fixed(profile: Profile) -> bool:
    """Tell whether a profile has one size for every axis."""
    return all(extent.min == extent.max for extent in profile.values())


def routing(
    model: openvino.Model, inputs: Mapping[str, Input], stated: Sequence[Profile], tokenizer: Tokenizer | None
) -> dict[str, Any] | None:
    """Return the facts of `routing.Routing` for the profiles of a recipe; None where no profile fixes every axis.

    An input is padded along its axis of tokens only where the model has a mask and the checkpoint has a tokenizer,
    which tells the padding token. Padding is left out where the axes of an output do not follow from those axes.
    Raises StepError for profiles that do not suit the model's inputs.
    """
    shapes = axes.shapes(inputs)
    named = [axes.by_name(profile, shapes) for profile in stated]
    fixed = [profile for profile in named if is_fixed(profile)]
    if not fixed or not axes.free(shapes):
        return None
    profiles.shapes(inputs, stated)  # refuses profiles that leave an axis open
    texts = tokenizer is not None and _MASK in inputs and token_rows.are_tokens(inputs)
    first = [value.shape[0] for value in inputs.values() if value.shape]
    rows = first[0] if isinstance(first[0], str) and is_batch(first[0]) and set(first) == {first[0]} else None
    tokens = inputs[_MASK].shape[1] if texts else None
    outputs = _outputs(model, inputs, rows, tokens if isinstance(tokens, str) else None)
    return {
        "inputs": {name: list(value.shape) for name, value in inputs.items()},
        "outputs": outputs or {value.any_name: [] for value in model.outputs},
        "fixed": [{axis: int(profile[axis].opt) for axis in axes.free(shapes)} for profile in fixed],
        "free": len(fixed) < len(named),
        "rows": rows if outputs else None,
        "tokens": tokens if outputs and isinstance(tokens, str) else None,
        "left": texts and tokenizer is not None and tokenizer.side == "left",
        "fill": {name: tokenizer.pad if name == "input_ids" else 0 for name in inputs} if texts and tokenizer else {},
    }


def _outputs(
    model: openvino.Model, inputs: Mapping[str, Input], rows: str | None, tokens: str | None
) -> dict[str, list[str | None]] | None:
    """Return for each axis of each output whether it is the axis of rows, that of tokens or neither (None).

    The result is None where an output has an axis whose size follows otherwise from these two, or cannot be known.
    """
    probed = []
    for sizes in _PROBES:
        known: dict[str | int | None, int] = dict(zip((rows, tokens), sizes, strict=True))
        shapes = {name: [known.get(axis, axis) for axis in value.shape] for name, value in inputs.items()}
        if any(isinstance(axis, str) for shape in shapes.values() for axis in shape):
            return None
        probe = model.clone()
        try:
            probe.reshape(shapes)
        except RuntimeError:
            return None
        probed.append({value.any_name: value.get_partial_shape() for value in probe.outputs})
    pairs: dict[tuple[int, int], str | None] = {
        (before, after): name for name, before, after in zip((rows, tokens), *_PROBES, strict=True) if name is not None
    }
    result: dict[str, list[str | None]] = {}
    for name, before in probed[0].items():
        after = probed[1][name]
        if before.is_dynamic or after.is_dynamic:
            return None
        result[name] = []
        for pair in zip(before.to_shape(), after.to_shape(), strict=True):
            if pair[0] != pair[1] and pair not in pairs:
                return None
            result[name].append(pairs.get(pair))
    return result
