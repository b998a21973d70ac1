"""Even rows: each row of a tensor divided by its largest value before a MatMul, whose result is multiplied by it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from engine.kit.onnx import opsets
from engine.kit.quantization.dynamic import readings
from engine.kit.quantization.dynamic.readings import Reading

if TYPE_CHECKING:
    import onnx

_LEAST = 1e-30
"""What rows of nothing but zeros are divided by."""
_AXIS, _FLOOR = "even_rows_axis", "even_rows_least"
_AXES_AS_INPUT = 18  # the opset since which ReduceMax takes its axes so


def scale(model: onnx.ModelProto, chosen: Sequence[Reading]) -> None:
    """Give every row of the chosen tensors, which MatMuls alone read, a scale of its own.

    Divided by its largest absolute value, a row reaches 1 like all others, and the scale of the whole tensor suits
    each of them, as a scale per row would.
    """
    import numpy as np
    from onnx import helper, numpy_helper

    if not chosen:
        return
    model.graph.initializer.append(numpy_helper.from_array(np.array([_LEAST], np.float32), _FLOOR))
    axes: list[str] = []
    options: dict[str, object] = {"axes": [-1]}
    if opsets.version(model) >= _AXES_AS_INPUT:
        model.graph.initializer.append(numpy_helper.from_array(np.array([-1], np.int64), _AXIS))
        axes, options = [_AXIS], {}
    before, after = {}, {}
    for reading in chosen:
        name = reading.source
        sizes, largest, reach = f"{name}_sizes", f"{name}_largest", f"{name}_reach"
        before[name] = [
            helper.make_node("Abs", [name], [sizes], f"{name}_Abs"),
            helper.make_node("ReduceMax", [sizes, *axes], [largest], f"{name}_ReduceMax", keepdims=1, **options),
            helper.make_node("Max", [largest, _FLOOR], [reach], f"{name}_Max"),
            helper.make_node("Div", [name, reach], [f"{name}_even"], f"{name}_Div"),
        ]
        for result in reading.results:
            after[result] = helper.make_node("Mul", [f"{result}_even", reach], [result], f"{result}_Mul")
    readings.insert(model, chosen, before, after)
