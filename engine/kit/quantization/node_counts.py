"""Node counts: how many nodes a graph has, and how many of them are Casts or compute on a GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.kit.quantization.report import NodeCounts

if TYPE_CHECKING:
    import onnx_ir as ir

_NO_KERNEL = frozenset({"Constant", "Flatten", "Identity", "Reshape", "Shape", "Size", "Squeeze", "Unsqueeze"})
"""Operators that give numbers a name or another shape, which ONNX Runtime does without a kernel."""


def of(model: ir.Model) -> NodeCounts:
    """Return the counts of the nodes of the main graph.

    Nodes that compute from shapes and stored tensors alone are left out of `computing`: ONNX Runtime runs them on the
    CPU or ahead of time.
    """
    shapes = set(model.graph.initializers.values())
    computing = 0
    for node in model.graph:
        if node.op_type in {"Constant", "Shape", "Size"} or shapes.issuperset(filter(None, node.inputs)):
            shapes.update(node.outputs)
        elif node.op_type not in _NO_KERNEL:
            computing += 1
    casts = sum(node.op_type == "Cast" for node in model.graph)
    return NodeCounts(sum(1 for _ in model.graph), casts, computing)
