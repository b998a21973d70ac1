"""Normalizations: the nodes of a graph that add up many numbers, also where the sums are spelled out in small nodes."""

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
"""Operators that reduce many numbers to one."""
ACCUMULATING = SUMS | {
    "EmbedLayerNormalization", "Exp", "GroupNorm", "GroupNormalization", "InstanceNormalization",
    "LayerNormalization", "Log", "LogSoftmax", "RMSNormalization", "SimplifiedLayerNormalization",
    "SkipGroupNorm", "SkipLayerNormalization", "SkipSimplifiedLayerNormalization", "Softmax", "Softplus",
}  # fmt: skip
"""Operators whose sums and exponentials lose what counts, or overflow, in half precision."""
MOVING = frozenset({
    "Concat", "DepthToSpace", "Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Identity", "Reshape",
    "Slice", "SpaceToDepth", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze",
})  # fmt: skip
"""Operators that hand numbers on as they are: these round nothing."""

_BY_ELEMENT = frozenset({
    "Abs", "Add", "Cast", "Clip", "Div", "Max", "Min", "Mul", "Neg", "Pow", "Reciprocal", "Sqrt", "Sub",
})  # fmt: skip
_FED_BY = frozenset({"Abs", "Pow", "Sub"})


def spelled_out(model: onnx.ModelProto) -> frozenset[str]:
    """Return the names of the small nodes around sums: what they add up, and what is made of the sums.

    Of a normalization written as Pow, ReduceMean, Add, Sqrt and Div these are all but ReduceMean, up to and including
    the node in which a sum meets other numbers. They lose as much in half precision as the normalization would.
    """
    weights = {tensor.name for tensor in model.graph.initializer}
    weights |= {node.output[0] for node in model.graph.node if node.op_type == "Constant"}
    makers = topology.producers(model.graph)
    sums: set[str] = set()
    found: set[str] = set()
    for node in model.graph.node:
        if node.op_type in SUMS | {"Exp", "Log"}:
            found |= _feeding(node, makers)
        if node.op_type in SUMS:
            sums.update(node.output)
            continue
        free = [name for name in node.input if name and name not in weights]
        if node.op_type in MOVING and free and free[0] in sums:
            sums.update(node.output)
        if node.op_type in _BY_ELEMENT and not sums.isdisjoint(free):
            found.add(node.name)
            if sums.issuperset(free):
                sums.update(node.output)
    return frozenset(found)


def _feeding(node: onnx.NodeProto, makers: Mapping[str, onnx.NodeProto]) -> set[str]:
    """Return the name of the node that makes what is added up or raised to a power, where it does so by element."""
    maker = makers.get(node.input[0])
    if maker is None:
        return set()
    squares = maker.op_type == "Mul" and maker.input[0] == maker.input[1]
    return {maker.name} if squares or maker.op_type in _FED_BY else set()
