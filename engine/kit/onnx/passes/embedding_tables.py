"""Embedding tables: stored in int8 with a scale per row, or once where a table is also the weight of a layer."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from engine.kit.onnx import surgery

if TYPE_CHECKING:
    import numpy as np
    import onnx_ir as ir

WORTH = 1 << 16
"""Lower limit of the number of elements in a quantized table.

For a smaller table, the added nodes cost more than int8 saves.
"""
_ROWS = 4096
"""The number of rows that are rounded at once, because a table is often the largest tensor of a model."""


def quantize(model: ir.Model, kept: Collection[str] = ()) -> list[str]:
    """Store in int8 every large table that only Gather nodes read; return the names of the tables.

    A table that a node named in `kept` reads stays as it is.

    The scale of a table's row is the largest absolute value of the row, divided by 127. A row of a table is multiplied
    by its scale right after the Gather, so only the rows that are read become float32 again, and the rounding of a row
    depends on that row alone.
    """
    tables = [value for value in model.graph.initializers.values() if _is_table(value, kept)]
    for table in tables:
        name = table.name or ""
        rounded, scales = _rounded(surgery.numbers(table))
        surgery.restore(table, rounded)
        table.name = f"{name}_int8"
        stored = surgery.store(model.graph, f"{name}_scales", scales)
        for use in table.uses():
            _scale_rows(use.node, stored)
    return sorted((table.name or "").removesuffix("_int8") for table in tables)


def _is_table(value: ir.Value, kept: Collection[str]) -> bool:
    """Whether a stored tensor is a large float32 table from which only Gather nodes read, and only whole rows."""
    import onnx_ir as ir

    stored = surgery.tensor(value)
    if stored.dtype != ir.DataType.FLOAT or len(stored.shape) != 2 or stored.size < WORTH:  # noqa: PLR2004  rows, columns
        return False
    reads = [use.idx == 0 and use.node.op_type == "Gather" and use.node.graph is value.graph for use in value.uses()]
    whole = not any(use.node.attributes.get_int("axis") for use in value.uses())
    keeps = any(use.node.name in kept for use in value.uses())
    return bool(reads) and all(reads) and whole and not keeps and not value.is_graph_output()


def _rounded(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    import numpy as np

    scales, rounded = np.empty((len(values), 1), np.float32), np.empty(values.shape, np.int8)
    for start in range(0, len(values), _ROWS):
        rows = values[start : start + _ROWS]
        scale = np.abs(rows).max(axis=1, keepdims=True) / np.float32(127)
        scale[scale == 0] = 1
        scales[start : start + _ROWS] = scale
        rounded[start : start + _ROWS] = np.rint(rows / scale)
    return rounded, scales


def _scale_rows(gather: ir.Node, scales: ir.Value) -> None:
    """Put nodes that gather the rows of a quantized table, and multiply each row by its scale, in a Gather's place."""
    import onnx_ir as ir

    (table, index), name, result = gather.inputs, gather.name or "", gather.outputs[0].name or ""
    rows = surgery.node("Gather", [table, index], f"{result}_int8", f"{name}_int8")
    scale = surgery.node("Gather", [scales, index], f"{result}_scales", f"{name}_scales")
    cast = surgery.node("Cast", rows.outputs, f"{result}_float", f"{name}_cast", to=int(ir.DataType.FLOAT))
    product = surgery.node("Mul", [*cast.outputs, *scale.outputs], result, f"{name}_scaled")
    surgery.replace(gather, [rows, scale, cast, product])


def untwin(model: ir.Model) -> list[str]:
    """Replace each MatMul weight that is a transposed Gather table by a Transpose of the table; return their old names.

    An exporter folds the Transpose of tied embeddings into a second copy of the model's largest weight. With the
    Transpose in the graph, the file stores the weight once, and a runtime makes the transposed copy in memory when the
    runtime loads the model.
    """
    tables, layers = _read(model.graph, "Gather", 0), _read(model.graph, "MatMul", 1)
    twins: dict[str, str] = {}
    for name in sorted(layers):
        matches = [
            table for table in sorted(tables.keys() - twins.keys()) if _is_transposed(layers[name], tables[table])
        ]
        if matches:
            twins[name] = matches[-1]
    nodes = []
    for name, table in twins.items():
        weight = model.graph.initializers.pop(name)
        node = surgery.node("Transpose", [tables[table]], name, f"{name}_of_{table}", perm=[1, 0])
        weight.replace_all_uses_with(node.outputs[0], replace_graph_outputs=True)
        nodes.append(node)
    if nodes:
        model.graph.insert_before(model.graph[0], nodes)
    return list(twins)


def _read(graph: ir.Graph, operator: str, index: int) -> dict[str, ir.Value]:
    """Return the stored matrices that nodes of a kind read through the input at `index`, by name."""
    return {
        name: value
        for name, value in graph.initializers.items()
        if len(surgery.tensor(value).shape) == 2  # noqa: PLR2004  rows, columns
        and any(use.node.op_type == operator and use.idx == index for use in value.uses())
    }


def _is_transposed(weight: ir.Value, table: ir.Value) -> bool:
    import numpy as np

    one, other = surgery.tensor(weight), surgery.tensor(table)
    if weight is table or list(one.shape) != list(reversed(list(other.shape))) or one.dtype != other.dtype:
        return False
    return np.array_equal(surgery.numbers(weight).T, surgery.numbers(table))
