"""Per-token scaling: each row is divided by its largest value, and the row's product is multiplied by that value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from engine.kit.onnx import opsets, surgery
from engine.kit.quantization.dynamic.layer_inputs import LayerInput

if TYPE_CHECKING:
    import onnx_ir as ir

_LEAST = 1e-30
"""The divisor of a row whose values are all 0, because the row cannot be divided by 0."""
_AXIS, _FLOOR = "even_rows_axis", "even_rows_least"
"""Names of two stored tensors: one has the axis along which a row's largest value is taken, one the smallest divisor.
"""
_AXES_AS_INPUT = 18
"""The opset since which ReduceMax takes its axes as an input instead of an attribute."""


def scale(model: ir.Model, inputs: Sequence[LayerInput]) -> None:
    """Give every row of the activations in `inputs` a scale of its own; `model` is changed.

    The layers that `inputs` names must all be MatMul nodes.

    Each row of an activation is divided by the row's largest absolute value. The largest absolute value of every
    divided row is 1, so the single scale of the int8 tensor suits every row as well as a scale per row would.

    No value of some activations is below a limit, -0.17 for Gelu. Their rows are divided by the largest value, or by
    the size of that limit if it is greater. The divided values then are within -1 and 1, too, and the absolute values
    of a wide activation are not computed.
    """
    import numpy as np

    if not inputs:
        return
    floors: dict[float, ir.Value] = {}
    axes: list[ir.Value] = []
    attributes = {"axes": [-1]}
    if opsets.under_both_names(model.opset_imports)[""] >= _AXES_AS_INPUT:
        axes, attributes = [surgery.store(model.graph, _AXIS, np.array([-1], np.int64))], {}
    for each in inputs:
        name = each.name
        signed = each.least is None
        least = _LEAST if each.least is None else max(_LEAST, -each.least)
        if least not in floors:
            own = _FLOOR if signed else f"{_FLOOR}_{least:g}"
            floors[least] = surgery.store(model.graph, own, np.array([least], np.float32))
        sizes = [surgery.node("Abs", [each.value], f"{name}_sizes", f"{name}_Abs")] if signed else []
        values = sizes[0].outputs[0] if sizes else each.value
        largest = surgery.node(
            "ReduceMax", [values, *axes], f"{name}_largest", f"{name}_ReduceMax", keepdims=1, **attributes
        )
        reach = surgery.node("Max", [*largest.outputs, floors[least]], f"{name}_reach", f"{name}_Max")
        even = surgery.node("Div", [each.value, *reach.outputs], f"{name}_even", f"{name}_Div")
        each.exchange(*sizes, largest, reach, even)
        for node in each.nodes:
            product = node.outputs[0]
            scaled = surgery.node("Mul", [product, *reach.outputs], "", f"{product.name}_Mul")
            surgery.follow(product, f"{product.name}_even", scaled)
