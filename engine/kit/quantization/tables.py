"""Tables: embedding tables stored in int8, with a scale per row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.kit.onnx import topology

if TYPE_CHECKING:
    import onnx

WORTH = 1 << 16
"""Lower limit of the number of elements in a quantized table.

For a smaller table, the added nodes cost more than int8 saves.
"""


def quantize(model: onnx.ModelProto) -> list[str]:
    """Store in int8 every large table that only Gather nodes read; return the names of the tables.

    The scale of a table's row is the largest absolute value of the row, divided by 127. A row of a table is multiplied
    by its scale right after the Gather, so only the rows that are read become float32 again, and the rounding of a row
    depends on that row alone.
    """
    import numpy as np
    from onnx import numpy_helper

    tables = _tables(model)
    for name, tensor in tables.items():
        values = numpy_helper.to_array(tensor)
        scales = np.abs(values).max(axis=1, keepdims=True) / np.float32(127)
        scales[scales == 0] = 1
        rounded = np.rint(values / scales).astype(np.int8)
        tensor.CopyFrom(numpy_helper.from_array(rounded, f"{name}_int8"))
        model.graph.initializer.append(numpy_helper.from_array(scales, f"{name}_scales"))
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
