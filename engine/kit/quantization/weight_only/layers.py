"""Layers: the weights of a graph that can be stored in blocks, and the nodes that read them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.kit.onnx import surgery
from engine.kit.onnx.passes import tables
from engine.kit.quantization.weight_only.blocks import BLOCK

if TYPE_CHECKING:
    import onnx_ir as ir

LEAST_OUTPUTS = 8
"""A layer with fewer outputs, such as a classifier, keeps its weights: they are few, and decide the answer."""
_PAIR = 2 * BLOCK
"""A table whose rows have an odd number of blocks is not looked up in blocks: ONNX Runtime 1.24 would misread them."""
_MATRIX = 2
"""The number of axes of a matrix."""


@dataclass
class Readers:
    """The nodes that read a stored matrix, and that can read it in blocks.

    `products` multiply with the matrix, which is [inputs, outputs]. `transposed` multiply with its transpose, as an
    output layer does that is tied to a table of words. `lookups` read rows.
    """

    products: list[ir.Node] = field(default_factory=list)
    transposed: list[ir.Node] = field(default_factory=list)
    lookups: list[ir.Node] = field(default_factory=list)


def of(graph: ir.Graph, kept: Collection[str] = ()) -> dict[ir.Value, Readers]:
    """Return the stored float32 matrices of the main graph that can be stored in blocks, with their readers.

    The nodes named in `kept` are no such readers.
    """
    return {
        value: readers
        for value in graph.initializers.values()
        if _is_matrix(value) and (readers := _readers(value, kept)) != Readers()
    }


def _readers(matrix: ir.Value, kept: Collection[str]) -> Readers:
    rows, columns = surgery.tensor(matrix).shape.numpy()
    readers = Readers()
    for use in matrix.uses():
        node = use.node
        if node.graph is not matrix.graph or node.name in kept:
            continue  # a body reads the stored numbers
        if _multiplies(node, use.idx) and columns >= LEAST_OUTPUTS:
            readers.products.append(node)
        elif node.op_type == "Transpose" and rows >= LEAST_OUTPUTS:
            users = (each.node for each in node.outputs[0].uses() if _multiplies(each.node, each.idx))
            readers.transposed += [user for user in users if user.name not in kept]
        elif node.op_type == "Gather" and use.idx == 0 and not node.attributes.get_int("axis"):
            readers.lookups.append(node)
    if columns % _PAIR or not (readers.transposed or rows * columns >= tables.WORTH):
        readers.lookups.clear()  # a small table costs less than the nodes that would read it
    return readers


def _multiplies(node: ir.Node, place: int) -> bool:
    return node.op_type == "MatMul" and place == 1


def _is_matrix(value: ir.Value) -> bool:
    import onnx_ir as ir

    stored = surgery.tensor(value)
    return stored.dtype == ir.DataType.FLOAT and len(stored.shape) == _MATRIX
