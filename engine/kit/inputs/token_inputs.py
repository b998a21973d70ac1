"""Token inputs: which inputs of an ONNX file a tokenizer fills, by what the graph does with them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from engine.errors import StepError
from engine.kit.inputs import index_ranges, token_rows
from engine.kit.onnx import onnx_files
from engine.kit.onnx.onnx_files import Input

if TYPE_CHECKING:
    import onnx

_IDS, _MASK, _TYPES = "input_ids", "attention_mask", "token_type_ids"
_MOST_TYPES = 16
"""The most rows of a table of token types; a vocabulary has more."""


def renamed(model: onnx.ModelProto) -> Mapping[str, str]:
    """Return {the model's name of an input: the name that a tokenizer gives it}, for those that differ.

    The input that looks rows up in a large table, or in the only one, is `input_ids`, the one that looks them up in a
    small table `token_type_ids`, and the one without a table `attention_mask`. Raises StepError if that is not clear.
    """
    inputs = onnx_files.inputs(model)
    if token_rows.are_tokens(inputs):
        return {}
    chosen = _by_use(inputs, index_ranges.of(model))
    taken = {name for node in onnx_files.nodes(model) for name in node.output}
    if chosen is None or set(chosen.values()) & taken:
        raise StepError(
            "the recipe names a tokenizer, and the model's inputs are not those that a tokenizer fills",
            [f"it takes {each.name}: {each.dtype} {list(each.shape)}" for each in inputs.values()],
            f"export the model with the inputs {_IDS}, {_MASK} and {_TYPES}; or leave `model.tokenizer` out: clients "
            "then send tensors",
        )
    return {own: name for own, name in chosen.items() if own != name}


def standardized(model: onnx.ModelProto) -> onnx.ModelProto:
    """Give the inputs of a model the names that a tokenizer gives them. Raises StepError as `renamed` does."""
    names = renamed(model)
    for value in model.graph.input:
        value.name = names.get(value.name, value.name)
    for node in onnx_files.nodes(model) if names else ():
        for index, name in enumerate(node.input):
            node.input[index] = names.get(name, name)
    return model


def _by_use(inputs: Mapping[str, Input], rows: Mapping[str, int]) -> dict[str, str] | None:
    """Return each input's name -> its name as a tokenizer gives it; None where the use does not tell."""
    roles: dict[str, str] = {}
    alone = len(rows.keys() & inputs.keys()) == 1
    for name, spec in inputs.items():
        if len(spec.shape) != len(("batch", "sequence")) or not spec.dtype.startswith(("int", "bool", "float")):
            return None
        if name in token_rows.NAMES:
            role = name
        elif name not in rows:
            role = _MASK
        else:
            role = _IDS if alone or rows[name] > _MOST_TYPES else _TYPES
        if role in roles.values() or (role in {_IDS, _TYPES} and not spec.dtype.startswith("int")):
            return None
        roles[name] = role
    return roles if _IDS in roles.values() else None
