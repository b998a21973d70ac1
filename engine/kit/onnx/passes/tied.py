"""Tied weights: a table of words that is also the layer over them is stored once, and turned round on loading."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx


def untwin(model: onnx.ModelProto) -> list[str]:
    """Store weights that are another one turned round as a Transpose of it; return their names.

    Looked at are tables, which Gather reads, and weights of MatMul. An exporter folds the Transpose of tied
    embeddings into a second copy of its largest weight; runtimes fold it again, in memory, when they load the graph.
    """
    tables = {node.input[0] for node in model.graph.node if node.op_type == "Gather"}
    layers = {node.input[1] for node in model.graph.node if node.op_type == "MatMul"}
    stored = {tensor.name: tensor for tensor in model.graph.initializer if len(tensor.dims) == 2}  # noqa: PLR2004
    twins = {
        name: table
        for name in sorted(layers & stored.keys())
        for table in sorted(tables & stored.keys())
        if _turned(stored[name], stored[table])
    }
    if twins:
        kept = [tensor for tensor in model.graph.initializer if tensor.name not in twins]
        del model.graph.initializer[:]
        model.graph.initializer.extend(kept)
        nodes = [_transpose(table, name) for name, table in twins.items()]
        nodes += model.graph.node
        del model.graph.node[:]
        model.graph.node.extend(nodes)
    return list(twins)


def _turned(weight: onnx.TensorProto, table: onnx.TensorProto) -> bool:
    import numpy as np
    from onnx import numpy_helper

    if weight is table or list(weight.dims) != list(reversed(table.dims)) or weight.data_type != table.data_type:
        return False
    return np.array_equal(numpy_helper.to_array(weight).T, numpy_helper.to_array(table))


def _transpose(table: str, name: str) -> onnx.NodeProto:
    from onnx import helper

    return helper.make_node("Transpose", [table], [name], name=f"{name}_of_{table}", perm=[1, 0])
