"""Infinities: constants that stand for infinity, such as -1e38 in masks, replaced by numbers within fp16."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from engine.kit.onnx import surgery

if TYPE_CHECKING:
    import numpy as np
    import onnx_ir as ir

BEYOND = 1e30
"""A constant above the magnitude 1e30 stands for infinity, because no weight is so large."""
STAND_IN = 3e4
"""The absolute value of the number that replaces a constant for infinity.

The sum of two scores of -3e4 is within the range of fp16, and softmax turns a score of -3e4 into 0.
"""

_ADDED = frozenset({"Add", "ConstantOfShape", "Expand", "Mul", "Sub", "Where"})
"""Operators through which a constant reaches attention scores. In Clip, Max and Min a huge constant means no limit."""
_PASS_ON = frozenset({"Cast", "Expand", "Identity", "Reshape", "Squeeze", "Unsqueeze"})


def saturate(model: ir.Model) -> list[str]:
    """Replace constants beyond 1e30 by 3e4 with the same sign, and return their names; `model` is changed.

    A constant is replaced only where all nodes that read the constant lead to attention scores.
    """
    import onnx_ir as ir

    saturated = []
    for value, node in _constants(model):
        tensor = surgery.tensor(value) if node is None else _tensor(node)
        if tensor is None or tensor.dtype != ir.DataType.FLOAT:
            continue
        numbers = tensor.numpy()
        if not (abs(numbers) > BEYOND).any() or not _reaches_scores(value):
            continue
        if node is None:
            surgery.restore(value, _finite(numbers))
        else:
            surgery.constant(node, _finite(numbers))
        saturated.append(value.name or "")
    return saturated


def _constants(model: ir.Model) -> Iterator[tuple[ir.Value, ir.Node | None]]:
    """Yield the stored tensors, and the outputs of Constant and ConstantOfShape with their nodes."""
    for graph in model.graphs():
        for value in graph.initializers.values():
            yield value, None
        for node in graph:
            if node.op_type in {"Constant", "ConstantOfShape"}:
                yield node.outputs[0], node


def _tensor(node: ir.Node) -> ir.TensorProtocol | None:
    """Return the tensor or the single number that a constant node holds; None for another kind of constant."""
    import onnx_ir as ir

    number = node.attributes.get_float("value_float", None)
    return node.attributes.get_tensor("value", None) if number is None else ir.tensor(number, dtype=ir.DataType.FLOAT)


def _finite(values: np.ndarray) -> np.ndarray:
    import numpy as np

    return np.where(abs(values) > BEYOND, np.copysign(np.float32(STAND_IN), values), values).astype(np.float32)


def _reaches_scores(value: ir.Value) -> bool:
    """Whether all readers of a value add, multiply or select its numbers, directly or after a reshape or a cast."""
    nodes = [use.node for use in value.uses()]
    return bool(nodes) and all(
        node.op_type in _ADDED or (node.op_type in _PASS_ON and _reaches_scores(node.outputs[0])) for node in nodes
    )
