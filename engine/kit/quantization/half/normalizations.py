"""Normalizations: finds the nodes that sum many numbers, also in a normalization that is written in small nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from engine.kit.onnx import topology

if TYPE_CHECKING:
    import onnx

SUMS = frozenset({
    "CumSum", "LpNormalization", "MeanVarianceNormalization", "ReduceL1", "ReduceL2", "ReduceLogSum",
    "ReduceLogSumExp", "ReduceMean", "ReduceProd", "ReduceSum", "ReduceSumSquare",
})  # fmt: skip
"""Operators that reduce many numbers to one number."""
ACCUMULATING = SUMS | {
    "EmbedLayerNormalization", "Exp", "GroupNorm", "GroupNormalization", "InstanceNormalization",
    "LayerNormalization", "Log", "LogSoftmax", "RMSNormalization", "SimplifiedLayerNormalization",
    "SkipGroupNorm", "SkipLayerNormalization", "SkipSimplifiedLayerNormalization", "Softmax", "Softplus",
}  # fmt: skip
"""Operators with sums or exponentials, which lose precision or overflow in half precision."""
MOVING = frozenset({
    "Concat", "DepthToSpace", "Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Identity", "Reshape",
    "Slice", "SpaceToDepth", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze",
})  # fmt: skip
"""Operators that move numbers without computing, so they round nothing."""

_BY_ELEMENT = frozenset({
    "Abs", "Add", "Cast", "Clip", "Div", "Max", "Min", "Mul", "Neg", "Pow", "Reciprocal", "Sqrt", "Sub",
})  # fmt: skip
_FEEDING = frozenset({"Abs", "Pow", "Sub"})


def spelled_out(model: onnx.ModelProto) -> frozenset[str]:
    """Return the names of the small nodes that a normalization or softmax is written in, except for the sums.

    In half precision, the small nodes of a normalization lose as much accuracy as a single operator for the
    normalization.

    In front of a sum, the result names the node that computes the summed numbers. Behind a sum, the result names the
    nodes that compute from sums alone, and the first node that combines a sum with numbers that are no sums. For a
    normalization written as Pow, ReduceMean, Add, Sqrt and Div, the result names Pow, Add, Sqrt and Div.
    """
    weights = {tensor.name for tensor in model.graph.initializer}
    weights |= {node.output[0] for node in model.graph.node if node.op_type == "Constant"}
    producers = topology.producers(model.graph)
    sums: set[str] = set()
    parts: set[str] = set()
    for node in model.graph.node:
        if node.op_type in SUMS | {"Exp", "Log"}:
            parts |= _feeding(node, producers)
        if node.op_type in SUMS:
            sums.update(node.output)
            continue
        free = [name for name in node.input if name and name not in weights]
        if node.op_type in MOVING and free and free[0] in sums:
            sums.update(node.output)
        if node.op_type in _BY_ELEMENT and not sums.isdisjoint(free):
            parts.add(node.name)
            if sums.issuperset(free):
                sums.update(node.output)
    return frozenset(parts)


def _feeding(node: onnx.NodeProto, producers: Mapping[str, onnx.NodeProto]) -> set[str]:
    """Return the name of the node in front of a sum or an exponential, if the node is a square, Abs, Pow or Sub."""
    producer = producers.get(node.input[0])
    if producer is None:
        return set()
    squares = producer.op_type == "Mul" and producer.input[0] == producer.input[1]
    return {producer.name} if squares or producer.op_type in _FEEDING else set()
