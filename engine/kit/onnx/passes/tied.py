"""Tied weights: an embedding table that is also the weight of a layer is stored once, and transposed on loading."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.kit.onnx import surgery

if TYPE_CHECKING:
    import onnx_ir as ir


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
