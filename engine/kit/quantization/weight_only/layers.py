"""Layers: the linear layers and look-ups of a graph whose weights can be stored in blocks."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from engine.kit.onnx import topology
from engine.kit.quantization import tables
from engine.kit.quantization.weight_only.blocks import BLOCK

if TYPE_CHECKING:
    import onnx

LEAST_OUTPUTS = 8
"""A layer with fewer outputs, such as a classifier, keeps its weights: they are few, and decide the answer."""
_PAIR = 2 * BLOCK
"""A table whose rows have an odd number of blocks is not looked up in blocks: ONNX Runtime 1.24 would misread them."""
_MATRIX = 2
"""The number of axes of a matrix."""


@dataclass(frozen=True)
class Weight:
    """A stored weight, by the name of its tensor: [inputs, outputs] or, with `outputs_first`, [outputs, inputs]."""

    tensor: str
    outputs_first: bool


def weights(graph: onnx.GraphProto) -> dict[str, Weight]:
    """Return the weights of linear layers, by the names that the MatMul nodes of the graph read.

    A MatMul reads a stored tensor, or the Transpose of one: the table of words that an output layer is tied to.
    """
    matrices = _matrices(graph)
    transposed = {
        node.output[0]: node.input[0]
        for node in graph.node
        if node.op_type == "Transpose" and node.input[0] in matrices and _swaps(node)
    }
    by_name = {name: Weight(name, outputs_first=False) for name in matrices}
    by_name |= {name: Weight(table, outputs_first=True) for name, table in transposed.items()}
    read = {node.input[1] for node in graph.node if node.op_type == "MatMul"}
    return {
        name: weight
        for name, weight in by_name.items()
        if name in read and matrices[weight.tensor].dims[not weight.outputs_first] >= LEAST_OUTPUTS
    }


def rows(graph: onnx.GraphProto) -> dict[str, Weight]:
    """Return the tables from which Gather nodes read whole rows, by name, and as weights with a row for each output.

    A small table is left out, unless an output layer reads the table, too: then it is stored in blocks anyway.
    """
    tied = {weight.tensor for weight in weights(graph).values() if weight.outputs_first}
    read = {node.input[0] for node in graph.node if looks_up(node)}
    return {
        name: Weight(name, outputs_first=True)
        for name, table in _matrices(graph).items()
        if name in read and not table.dims[1] % _PAIR and (name in tied or prod(table.dims) >= tables.WORTH)
    }


def looks_up(node: onnx.NodeProto) -> bool:
    """Whether a node is a Gather of whole rows."""
    return node.op_type == "Gather" and not topology.whole_number(node, "axis")


def _matrices(graph: onnx.GraphProto) -> dict[str, onnx.TensorProto]:
    """Return the stored float32 matrices of a graph by name."""
    import onnx

    return {
        name: tensor
        for name, tensor in topology.initializers(graph).items()
        if len(tensor.dims) == _MATRIX and tensor.data_type == onnx.TensorProto.FLOAT
    }


def _swaps(node: onnx.NodeProto) -> bool:
    """Whether a Transpose of a matrix swaps its axes, as a Transpose without `perm` does."""
    orders = [list(attribute.ints) for attribute in node.attribute if attribute.name == "perm"]
    return orders in ([], [[1, 0]])
