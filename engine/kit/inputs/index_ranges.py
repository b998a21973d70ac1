"""Index ranges: the number of values that an integer input may have, by the rows of the table that it indexes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx

_PASS_ON = frozenset({"Cast", "Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"})
"""Operators that change a tensor's shape or type but not its values."""
_EMBED = frozenset({"EmbedLayerNormalization", "QEmbedLayerNormalization"})
_EMBED_TABLES = {0: 2, 1: 4}
"""In ONNX Runtime's fused embedding, input 0 (token ids) indexes input 2, and input 1 (segments) indexes input 4."""


def of(model: onnx.ModelProto) -> dict[str, int]:
    """Return the name of each integer input -> the number of rows of the smallest table that the input indexes.

    A table is indexed by the operator `Gather` or by ONNX Runtime's fused embedding (EmbedLayerNormalization). Between
    an input and the operator that indexes a table there may be operators that pass values on unchanged (`_PASS_ON`).
    """
    origin = {value.name: value.name for value in model.graph.input}
    sizes = {tensor.name: tuple(tensor.dims) for tensor in model.graph.initializer}
    ranges: dict[str, int] = {}
    for node in model.graph.node:
        if node.op_type in _PASS_ON and node.input[0] in origin:
            origin[node.output[0]] = origin[node.input[0]]
        if node.op_type in _PASS_ON | {"DequantizeLinear"} and node.input[0] in sizes:
            sizes[node.output[0]] = sizes[node.input[0]]
        for indices, rows in _lookups(node, sizes):
            if indices in origin:
                name = origin[indices]
                ranges[name] = min(rows, ranges.get(name, rows))
    return ranges


def _lookups(node: onnx.NodeProto, sizes: Mapping[str, tuple[int, ...]]) -> Iterator[tuple[str, int]]:
    """Yield the name of each index tensor of a node, with the number of rows of the table that the tensor indexes."""
    if node.op_type == "Gather" and sizes.get(node.input[0]):
        axis = next((attribute.i for attribute in node.attribute if attribute.name == "axis"), 0)
        yield node.input[1], sizes[node.input[0]][axis]
    if node.op_type in _EMBED:
        for indices, table in _EMBED_TABLES.items():
            if sizes.get(node.input[table]):
                yield node.input[indices], sizes[node.input[table]][0]
