"""Tied weights: an embedding table that is also the weight of a layer is stored once, and transposed on loading."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.kit.onnx import mapped_weights, topology

if TYPE_CHECKING:
    import onnx


def untwin(model: onnx.ModelProto) -> list[str]:
    """Replace each MatMul weight that is a transposed Gather table by a Transpose of the table; return their old names.

    An exporter folds the Transpose of tied embeddings into a second copy of the model's largest weight. With the
    Transpose in the graph, the file stores the weight once, and a runtime makes the transposed copy in memory when the
    runtime loads the model.
    """
    tables = {node.input[0] for node in model.graph.node if node.op_type == "Gather"}
    layers = {node.input[1] for node in model.graph.node if node.op_type == "MatMul"}
    stored = {tensor.name: tensor for tensor in model.graph.initializer if len(tensor.dims) == 2}  # noqa: PLR2004
    twins = {
        name: table
        for name in sorted(layers & stored.keys())
        for table in sorted(tables & stored.keys())
        if _is_transposed(stored[name], stored[table])
    }
    if twins:
        topology.remove_named(model.graph.initializer, twins)
        nodes = [_transpose(table, name) for name, table in twins.items()]
        nodes += model.graph.node
        del model.graph.node[:]
        model.graph.node.extend(nodes)
    return list(twins)


def _is_transposed(weight: onnx.TensorProto, table: onnx.TensorProto) -> bool:
    import numpy as np

    if weight is table or list(weight.dims) != list(reversed(table.dims)) or weight.data_type != table.data_type:
        return False
    return np.array_equal(mapped_weights.array(weight).T, mapped_weights.array(table))


def _transpose(table: str, name: str) -> onnx.NodeProto:
    from onnx import helper

    return helper.make_node("Transpose", [table], [name], name=f"{name}_of_{table}", perm=[1, 0])
