"""Fixed shapes: profiles of one size each, for which a model is prepared apart, and the padding of inputs to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.kit.inputs import token_rows
from engine.runtimes import axes, profiles
from engine.runtimes.triton_tensors import is_batch

if TYPE_CHECKING:
    from engine.kit.inputs.tokenizer import Tokenizer
    from engine.kit.onnx.onnx_files import Input
    from engine.recipe.values import Profile

AxesOfOutputs = Mapping[str, Sequence[str | None]]
"""For each output: whether each axis is the axis of rows, that of tokens (their names), or neither (None)."""
data = ("routing.py",)  # packages carry this file unchanged
_MASK = "attention_mask"


def code() -> bytes:
    """Return the content of the module `routing.py`, whose class `Routing` chooses a shape and pads inputs to it."""
    return (Path(__file__).parent / data[0]).read_bytes()


def routing(
    inputs: Mapping[str, Input],
    stated: Sequence[Profile],
    tokenizer: Tokenizer | None,
    *,
    outputs: Sequence[str],
    axes_of_outputs: Callable[[str | None, str | None], AxesOfOutputs | None],
) -> dict[str, Any] | None:
    """Return the facts of `routing.Routing` for the profiles of a recipe; None where no profile fixes every axis.

    An input is padded along its axis of tokens only where the model has a mask and the checkpoint has a tokenizer,
    which tells the padding token. `axes_of_outputs` gets the names of the axes of rows and of tokens, and returns None
    where the axes of an output do not follow from them: nothing is padded then. `outputs` are the names of the outputs.
    Raises StepError for profiles that do not suit the model's inputs.
    """
    shapes = axes.shapes(inputs)
    named = [axes.by_name(profile, shapes) for profile in stated]
    fixed = profiles.fixed(named)
    if not fixed or not axes.free(shapes):
        return None
    profiles.shapes(inputs, stated)  # refuses profiles that leave an axis open
    texts = tokenizer is not None and _MASK in inputs and token_rows.are_tokens(inputs)
    first = [value.shape[0] for value in inputs.values() if value.shape]
    rows = first[0] if isinstance(first[0], str) and is_batch(first[0]) and set(first) == {first[0]} else None
    tokens = inputs[_MASK].shape[1] if texts else None
    known = axes_of_outputs(rows, tokens if isinstance(tokens, str) else None)
    return {
        "inputs": {name: list(value.shape) for name, value in inputs.items()},
        "outputs": {name: list(each) for name, each in known.items()} if known else {name: [] for name in outputs},
        "fixed": [{axis: sizes[axis] for axis in axes.free(shapes)} for sizes in fixed],
        "free": len(fixed) < len(named),
        "rows": rows if known else None,
        "tokens": tokens if known and isinstance(tokens, str) else None,
        "left": texts and tokenizer is not None and tokenizer.side == "left",
        "fill": {name: tokenizer.pad if name == "input_ids" else 0 for name in inputs} if texts and tokenizer else {},
    }
