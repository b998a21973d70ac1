"""Matrix work: the number of multiplications of each matrix product, to report shares of all multiplications."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from math import prod
from typing import TYPE_CHECKING

from engine.kit.onnx import topology

if TYPE_CHECKING:
    import onnx

Extents = Mapping[str, tuple[int, ...]]

MATRIX = frozenset({"Attention", "Conv", "ConvTranspose", "Einsum", "Gemm", "MatMul", "MultiHeadAttention"})
"""Operators that multiply matrices, ONNX Runtime's fused attention among them."""


def tensors(model: onnx.ModelProto) -> frozenset[str]:
    """Return the names of the inputs and outputs of the main graph's matrix operators, whose extents `work` needs."""
    nodes = (node for node in model.graph.node if node.op_type in MATRIX)
    return frozenset(name for node in nodes for name in (*node.input, *node.output) if name)


def stored(model: onnx.ModelProto) -> dict[str, tuple[int, ...]]:
    """Return the extents of the weights by name."""
    return {tensor.name: tuple(tensor.dims) for tensor in model.graph.initializer}


def work(model: onnx.ModelProto, extents: Extents) -> dict[str, int]:
    """Return the number of multiplications of every matrix operator, by the name of its node."""
    return {node.name: multiplications(node, extents) for node in model.graph.node if node.op_type in MATRIX}


def multiplications(node: onnx.NodeProto, extents: Extents) -> int:
    """Return the number of multiplications of one matrix operator, from the extents of its inputs and outputs."""
    shapes = [extents.get(name, ()) for name in node.input]
    result = prod(extents.get(node.output[0], (0,)))
    if node.op_type in {"Conv", "ConvTranspose"}:
        # A filter is applied once per output element; of a transposed convolution once per input element.
        return (result if node.op_type == "Conv" else prod(shapes[0])) * prod(shapes[1][1:])
    if node.op_type == "Attention" and len(shapes) > 1 and len(shapes[1]) == 2:  # noqa: PLR2004  fused, with weights
        return prod(shapes[0]) * shapes[1][1] + 2 * result * shapes[0][1]
    if node.op_type == "Gemm":
        return result * _inner(shapes[0], 0 if topology.whole_number(node, "transA") else 1)
    if node.op_type in {"Attention", "MultiHeadAttention"}:
        return 2 * result * _inner(shapes[1], -2)
    if node.op_type == "Einsum":
        return max(map(prod, (*shapes, (result,))))
    return result * _inner(shapes[0], -1)


def share(counts: Mapping[str, int], chosen: AbstractSet[str]) -> float | None:
    """Return the chosen nodes' share of all multiplications, from 0 to 1; None for a model without multiplications."""
    total = sum(counts.values())
    return round(sum(count for name, count in counts.items() if name in chosen) / total, 4) if total else None


def _inner(shape: tuple[int, ...], axis: int) -> int:
    """Return the extent of an axis of a shape; 1 where the shape has too few axes."""
    return shape[axis] if len(shape) > max(axis, -axis - 1) else 1
