"""Normalizations: finds the nodes that sum many numbers, also in a normalization that is written in small nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx_ir as ir

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


def spelled_out(model: ir.Model) -> frozenset[str]:
    """Return the names of the small nodes that a normalization or softmax is written in, except for the sums.

    In half precision, the small nodes of a normalization lose as much accuracy as a single operator for the
    normalization.

    In front of a sum, the result names the node that computes the summed numbers. Behind a sum, the result names the
    nodes that compute from sums alone, and the first node that combines a sum with numbers that are no sums. For a
    normalization written as Pow, ReduceMean, Add, Sqrt and Div, the result names Pow, Add, Sqrt and Div.
    """
    sums: set[ir.Value] = set()
    parts: set[str] = set()
    for node in model.graph:
        if node.op_type in SUMS | {"Exp", "Log"}:
            parts |= _feeding(node)
        if node.op_type in SUMS:
            sums.update(node.outputs)
            continue
        free = [value for value in node.inputs if value is not None and not _is_constant(value)]
        if node.op_type in MOVING and free and free[0] in sums:
            sums.update(node.outputs)
        if node.op_type in _BY_ELEMENT and not sums.isdisjoint(free):
            parts.add(node.name or "")
            if sums.issuperset(free):
                sums.update(node.outputs)
    return frozenset(parts)


def _is_constant(value: ir.Value) -> bool:
    producer = value.producer()
    return value.is_initializer() or (producer is not None and producer.op_type == "Constant")


def _feeding(node: ir.Node) -> set[str]:
    """Return the name of the node in front of a sum or an exponential, if the node is a square, Abs, Pow or Sub."""
    source = node.inputs[0]
    producer = None if source is None else source.producer()
    if producer is None:
        return set()
    squares = producer.op_type == "Mul" and producer.inputs[0] is producer.inputs[1]
    return {producer.name or ""} if squares or producer.op_type in _FEEDING else set()
