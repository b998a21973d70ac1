"""Tables: embedding tables stored in int8, with a scale per row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.kit.onnx import mapped_weights, topology

if TYPE_CHECKING:
    import onnx

WORTH = 1 << 16
"""Lower limit of the number of elements in a quantized table.

For a smaller table, the added nodes cost more than int8 saves.
"""
_ROWS = 4096
"""The number of rows that are rounded at once, because a table is often the largest tensor of a model."""


def quantize(model: onnx.ModelProto) -> list[str]:
    """Store in int8 every large table that only Gather nodes read; return the names of the tables.

    The scale of a table's row is the largest absolute value of the row, divided by 127. A row of a table is multiplied
    by its scale right after the Gather, so only the rows that are read become float32 again, and the rounding of a row
    depends on that row alone.
    """
    import numpy as np

    tables = _tables(model)
    for name, tensor in tables.items():
        values = mapped_weights.array(tensor)
        scales, rounded = np.empty((len(values), 1), np.float32), np.empty(values.shape, np.int8)
        for start in range(0, len(values), _ROWS):
            rows = values[start : start + _ROWS]
            scale = np.abs(rows).max(axis=1, keepdims=True) / np.float32(127)
            scale[scale == 0] = 1
            scales[start : start + _ROWS] = scale
            rounded[start : start + _ROWS] = np.rint(rows / scale)
        tensor.CopyFrom(mapped_weights.tensor_of(rounded, f"{name}_int8"))
        model.graph.initializer.append(mapped_weights.tensor_of(scales, f"{name}_scales"))
    nodes = [replacement for node in model.graph.node for replacement in _looked_up(node, tables)]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return sorted(tables)


def _tables(model: onnx.ModelProto) -> dict[str, onnx.TensorProto]:
    """Return by name the large float32 tables from which only Gather nodes read, and only whole rows."""
    from math import prod

    import onnx

    tables = {
        tensor.name: tensor
        for tensor in model.graph.initializer
        if tensor.data_type == onnx.TensorProto.FLOAT and len(tensor.dims) == 2 and prod(tensor.dims) >= WORTH  # noqa: PLR2004  rows, columns
    }
    read: set[str] = set()
    otherwise = {value.name for value in model.graph.output}
    for node in model.graph.node:
        rows = node.op_type == "Gather" and not topology.whole_number(node, "axis")
        read.update(node.input[:1] if rows else ())
        otherwise.update(node.input[1:] if rows else node.input)
        otherwise |= topology.captured(node)
    return {name: tensor for name, tensor in tables.items() if name in read - otherwise}


def _looked_up(node: onnx.NodeProto, tables: dict[str, onnx.TensorProto]) -> list[onnx.NodeProto]:
    """Return the nodes that replace a node: for a Gather on a quantized table, nodes that gather and scale rows."""
    import onnx
    from onnx import helper

    if node.op_type != "Gather" or node.input[0] not in tables:
        return [node]
    table, index, result, single = node.input[0], node.input[1], node.output[0], onnx.TensorProto.FLOAT
    return [
        helper.make_node("Gather", [f"{table}_int8", index], [f"{result}_int8"], f"{node.name}_int8"),
        helper.make_node("Gather", [f"{table}_scales", index], [f"{result}_scales"], f"{node.name}_scales"),
        helper.make_node("Cast", [f"{result}_int8"], [f"{result}_float"], f"{node.name}_cast", to=single),
        helper.make_node("Mul", [f"{result}_float", f"{result}_scales"], [result], f"{node.name}_scaled"),
    ]
