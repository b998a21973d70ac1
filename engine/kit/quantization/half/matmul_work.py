"""Matrix work: how many multiplications each node of a graph does, so that shares can be said."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from math import prod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx

Extents = Mapping[str, tuple[int, ...]]

MATRIX = frozenset({"Attention", "Conv", "ConvTranspose", "Einsum", "Gemm", "MatMul", "MultiHeadAttention"})
"""Operators that multiply matrices, ONNX Runtime's fused attention among them."""


def tensors(model: onnx.ModelProto) -> frozenset[str]:
    """Return the tensors whose extents `work` asks for: what matrix operators of the main graph read and give."""
    nodes = (node for node in model.graph.node if node.op_type in MATRIX)
    return frozenset(name for node in nodes for name in (*node.input, *node.output) if name)


def stored(model: onnx.ModelProto) -> dict[str, tuple[int, ...]]:
    """Return the extents of the weights."""
    return {tensor.name: tuple(tensor.dims) for tensor in model.graph.initializer}


def work(model: onnx.ModelProto, extents: Extents) -> dict[str, int]:
    """Return the multiplications of every matrix operator by its name, at the given extents."""
    return {node.name: _multiplications(node, extents) for node in model.graph.node if node.op_type in MATRIX}


def share(done: Mapping[str, int], chosen: AbstractSet[str]) -> float | None:
    """Return which share of the work the chosen nodes do, from 0 to 1; None where there is none."""
    total = sum(done.values())
    return round(sum(count for name, count in done.items() if name in chosen) / total, 4) if total else None


def _multiplications(node: onnx.NodeProto, extents: Extents) -> int:
    shapes = [extents.get(name, ()) for name in node.input]
    result = prod(extents.get(node.output[0], (0,)))
    if node.op_type in {"Conv", "ConvTranspose"}:
        # A transposed convolution multiplies each number that goes in, a convolution makes each that comes out.
        return (result if node.op_type == "Conv" else prod(shapes[0])) * prod(shapes[1][1:])
    if node.op_type == "Attention" and len(shapes) > 1 and len(shapes[1]) == 2:  # noqa: PLR2004  fused, with weights
        return prod(shapes[0]) * shapes[1][1] + 2 * result * shapes[0][1]
    if node.op_type == "Gemm":
        return result * _inner(shapes[0], 0 if _turned(node) else 1)
    if node.op_type in {"Attention", "MultiHeadAttention"}:
        return 2 * result * _inner(shapes[1], -2)
    if node.op_type == "Einsum":
        return max(map(prod, (*shapes, (result,))))
    return result * _inner(shapes[0], -1)


def _inner(shape: tuple[int, ...], axis: int) -> int:
    return shape[axis] if len(shape) > max(axis, -axis - 1) else 1


def _turned(node: onnx.NodeProto) -> bool:
    return any(attribute.name == "transA" and attribute.i for attribute in node.attribute)
