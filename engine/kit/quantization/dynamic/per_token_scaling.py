"""Per-token scaling: each row is divided by its largest value, and the row's product is multiplied by that value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from engine.kit.onnx import opsets
from engine.kit.quantization.dynamic import layer_inputs
from engine.kit.quantization.dynamic.layer_inputs import LayerInput

if TYPE_CHECKING:
    import onnx

_LEAST = 1e-30
"""The divisor of a row whose values are all 0, because the row cannot be divided by 0."""
_AXIS, _FLOOR = "even_rows_axis", "even_rows_least"
"""Names of two stored tensors: one has the axis along which a row's largest value is taken, one the smallest divisor.
"""
_AXES_AS_INPUT = 18
"""The opset since which ReduceMax takes its axes as an input instead of an attribute."""


def scale(model: onnx.ModelProto, inputs: Sequence[LayerInput]) -> None:
    """Give every row of the activations in `inputs` a scale of its own; `model` is changed.

    The layers that `inputs` names must all be MatMul nodes.

    Each row of an activation is divided by the row's largest absolute value. The largest absolute value of every
    divided row is 1, so the single scale of the int8 tensor suits every row as well as a scale per row would.
    """
    import numpy as np
    from onnx import helper, numpy_helper

    if not inputs:
        return
    model.graph.initializer.append(numpy_helper.from_array(np.array([_LEAST], np.float32), _FLOOR))
    axes: list[str] = []
    attributes: dict[str, object] = {"axes": [-1]}
    if opsets.version(model) >= _AXES_AS_INPUT:
        model.graph.initializer.append(numpy_helper.from_array(np.array([-1], np.int64), _AXIS))
        axes, attributes = [_AXIS], {}
    before, after = {}, {}
    for each in inputs:
        name = each.tensor
        sizes, largest, reach = f"{name}_sizes", f"{name}_largest", f"{name}_reach"
        before[name] = [
            helper.make_node("Abs", [name], [sizes], f"{name}_Abs"),
            helper.make_node("ReduceMax", [sizes, *axes], [largest], f"{name}_ReduceMax", keepdims=1, **attributes),
            helper.make_node("Max", [largest, _FLOOR], [reach], f"{name}_Max"),
            helper.make_node("Div", [name, reach], [f"{name}_even"], f"{name}_Div"),
        ]
        for product in each.products:
            after[product] = helper.make_node("Mul", [f"{product}_even", reach], [product], f"{product}_Mul")
    layer_inputs.insert(model, inputs, before, after)
