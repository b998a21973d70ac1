"""Matrix work: the number of multiplications of each matrix product, to report shares of all multiplications."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from math import prod
from typing import TYPE_CHECKING

from engine.kit.onnx import surgery

if TYPE_CHECKING:
    import onnx_ir as ir

Extents = Mapping[str, tuple[int, ...]]

_RECURRENT = frozenset({"GRU", "LSTM", "RNN"})
MATRIX = _RECURRENT | {"Attention", "Conv", "ConvTranspose", "Einsum", "Gemm", "MatMul", "MultiHeadAttention"}
"""Operators that multiply matrices, ONNX Runtime's fused attention among them."""


def tensors(model: ir.Model) -> frozenset[str]:
    """Return the names of the inputs and outputs of the main graph's matrix operators, whose extents `work` needs."""
    nodes = (node for node in model.graph if node.op_type in MATRIX)
    return frozenset(name for node in nodes for name in surgery.names(node))


def stored(model: ir.Model) -> dict[str, tuple[int, ...]]:
    """Return the extents of the weights by name."""
    return {name: surgery.shape(surgery.tensor(value)) for name, value in model.graph.initializers.items()}


def work(model: ir.Model, extents: Extents) -> dict[str, int]:
    """Return the number of multiplications of every matrix operator, by the name of its node."""
    return {node.name or "": multiplications(node, extents) for node in model.graph if node.op_type in MATRIX}


def multiplications(node: ir.Node, extents: Extents) -> int:
    """Return the number of multiplications of one matrix operator, from the extents of its inputs and outputs."""
    shapes = [extents.get(name, ()) for name in surgery.input_names(node)]
    result = prod(extents.get(surgery.output_names(node)[0], (0,)))
    if node.op_type in {"Conv", "ConvTranspose"}:
        # A filter is applied once per output element; of a transposed convolution once per input element.
        return (result if node.op_type == "Conv" else prod(shapes[0])) * prod(shapes[1][1:])
    if node.op_type == "Attention" and len(shapes) > 1 and len(shapes[1]) == 2:  # noqa: PLR2004  fused, with weights
        return prod(shapes[0]) * shapes[1][1] + 2 * result * shapes[0][1]
    if node.op_type in {"Attention", "MultiHeadAttention"}:
        return 2 * result * _inner(shapes[1], -2)
    if node.op_type in _RECURRENT:  # each step of each row multiplies the input and the state by all of their weights
        return prod(shapes[0][:2]) * (prod(shapes[1]) + prod(shapes[2]))
    if node.op_type == "Einsum":
        return max(map(prod, (*shapes, (result,))))
    is_transposed = node.op_type == "Gemm" and surgery.whole_number(node, "transA")
    return result * _inner(shapes[0], 0 if is_transposed else -1)


def share(counts: Mapping[str, int], chosen: AbstractSet[str]) -> float | None:
    """Return the chosen nodes' share of all multiplications, from 0 to 1; None for a model without multiplications."""
    total = sum(counts.values())
    return round(sum(count for name, count in counts.items() if name in chosen) / total, 4) if total else None


def _inner(shape: tuple[int, ...], axis: int) -> int:
    """Return the extent of an axis of a shape; 1 where the shape has too few axes."""
    return shape[axis] if len(shape) > max(axis, -axis - 1) else 1
