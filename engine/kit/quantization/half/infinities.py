"""Infinities: constants that stand for infinity, such as -1e38 in masks, replaced by numbers within fp16."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from engine.kit.onnx import mapped_weights, onnx_files, topology

if TYPE_CHECKING:
    import numpy as np
    import onnx

BEYOND = 1e30
"""A constant above the magnitude 1e30 stands for infinity, because no weight is so large."""
STAND_IN = 3e4
"""The absolute value of the number that replaces a constant for infinity.

The sum of two scores of -3e4 is within the range of fp16, and softmax turns a score of -3e4 into 0.
"""

_ADDED = frozenset({"Add", "ConstantOfShape", "Expand", "Mul", "Sub", "Where"})
"""Operators through which a constant reaches attention scores. In Clip, Max and Min a huge constant means no limit."""
_PASS_ON = frozenset({"Cast", "Expand", "Identity", "Reshape", "Squeeze", "Unsqueeze"})


def saturate(model: onnx.ModelProto) -> list[str]:
    """Replace constants beyond 1e30 by 3e4 with the same sign, and return their names; `model` is changed.

    A constant is replaced only where all nodes that read the constant lead to attention scores.
    """
    readers = topology.consumers(onnx_files.nodes(model))
    saturated = []
    for name, tensor in _constants(model):
        values = _values(tensor)
        if values is None or not (abs(values) > BEYOND).any() or not _reaches_scores(name, readers):
            continue
        _replace(tensor, values)
        saturated.append(name)
    return saturated


def _constants(model: onnx.ModelProto) -> Iterator[tuple[str, onnx.TensorProto]]:
    """Yield the initializers and the constants in nodes, by the name of the tensor."""
    for graph in onnx_files.graphs(model.graph):
        for tensor in graph.initializer:
            yield tensor.name, tensor
        for node in graph.node:
            if node.op_type in {"Constant", "ConstantOfShape"}:
                for attribute in node.attribute:
                    if attribute.name == "value_float":
                        _as_tensor(attribute)
                    if attribute.name == "value":
                        yield node.output[0], attribute.t


def _as_tensor(attribute: onnx.AttributeProto) -> None:
    """Turn a constant's float attribute into a tensor attribute."""
    import numpy as np
    from onnx import helper, numpy_helper

    tensor = numpy_helper.from_array(np.array(attribute.f, np.float32))
    attribute.CopyFrom(helper.make_attribute("value", tensor))


def _values(tensor: onnx.TensorProto) -> np.ndarray | None:
    """Return the values of a float32 tensor; None for another type."""
    import onnx

    if tensor.data_type != onnx.TensorProto.FLOAT:
        return None
    return mapped_weights.array(tensor)


def _replace(tensor: onnx.TensorProto, values: np.ndarray) -> None:
    import numpy as np

    finite = np.where(abs(values) > BEYOND, np.copysign(np.float32(STAND_IN), values), values).astype(np.float32)
    tensor.CopyFrom(mapped_weights.tensor_of(finite, tensor.name))


def _reaches_scores(name: str, readers: dict[str, list[onnx.NodeProto]]) -> bool:
    """Whether all readers of a tensor add, multiply or select its values, directly or after a reshape or a cast."""
    nodes = readers.get(name, [])
    return bool(nodes) and all(
        node.op_type in _ADDED or (node.op_type in _PASS_ON and _reaches_scores(node.output[0], readers))
        for node in nodes
    )
