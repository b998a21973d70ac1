"""Infinities: constants that stand for minus infinity, brought into what half precision holds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from engine.kit.onnx import onnx_files, topology

if TYPE_CHECKING:
    import numpy as np
    import onnx

BEYOND = 1e30
"""From here on a constant means "infinitely far": no weight is so large. float32 ends at 3.4e38."""
STAND_IN = 3e4
"""What it becomes: two of them added are still within fp16, and the softmax of it is 0 beside any real score."""

_ADDED = frozenset({"Add", "ConstantOfShape", "Expand", "Mul", "Sub", "Where"})
"""Operators through which such a constant reaches scores. Where it is a limit (Clip, Max, Min) it says "none"."""
_PASS_ON = frozenset({"Cast", "Expand", "Identity", "Reshape", "Squeeze", "Unsqueeze"})


def saturate(model: onnx.ModelProto) -> list[str]:
    """Bring constants beyond 1e30 to 3e4, sign kept, in a model that is changed; return the constants' names.

    A constant that also goes where it is no score is left as it is.
    """
    readers = topology.consumers(onnx_files.nodes(model))
    found = []
    for name, tensor in _constants(model):
        values = _values(tensor)
        if values is None or not (abs(values) > BEYOND).any() or not _reaches_scores(name, readers):
            continue
        _replace(tensor, values)
        found.append(name)
    return found


def _constants(model: onnx.ModelProto) -> Iterator[tuple[str, onnx.TensorProto]]:
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
    """Write a number that a node holds as a tensor, which all constants are then."""
    import numpy as np
    from onnx import helper, numpy_helper

    tensor = numpy_helper.from_array(np.array(attribute.f, np.float32))
    attribute.CopyFrom(helper.make_attribute("value", tensor))


def _values(tensor: onnx.TensorProto) -> np.ndarray | None:
    import onnx
    from onnx import numpy_helper

    if tensor.data_type != onnx.TensorProto.FLOAT:
        return None
    values: np.ndarray = numpy_helper.to_array(tensor)
    return values


def _replace(tensor: onnx.TensorProto, values: np.ndarray) -> None:
    import numpy as np
    from onnx import numpy_helper

    near = np.where(abs(values) > BEYOND, np.copysign(np.float32(STAND_IN), values), values).astype(np.float32)
    tensor.CopyFrom(numpy_helper.from_array(near, tensor.name))


def _reaches_scores(name: str, readers: dict[str, list[onnx.NodeProto]]) -> bool:
    """Whether all who read a tensor add it, multiply by it or choose it, be it reshaped before."""
    nodes = readers.get(name, [])
    return bool(nodes) and all(
        node.op_type in _ADDED or (node.op_type in _PASS_ON and _reaches_scores(node.output[0], readers))
        for node in nodes
    )
