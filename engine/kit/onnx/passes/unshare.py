"""Unshare: operators of different kinds that share a weight each get a copy of the weight."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from engine.kit.onnx import surgery
from engine.kit.onnx.names import TensorNames

if TYPE_CHECKING:
    import onnx_ir as ir


def unshare(model: ir.Model, nodes: Collection[str], weights: Mapping[str, Sequence[int]]) -> None:
    """Give each kind of operator its own copy of a weight that the named nodes share with nodes of other kinds.

    `weights` lists the indices of each operator's inputs that are weights. ONNX Runtime's quantizer quantizes a shared
    weight once, for the first operator that reads the weight. Without a copy for each kind of operator, operators of a
    second kind would convert the shared weight back to floating point at every run.
    """
    names = TensorNames(model)
    copies: dict[tuple[ir.Value, str], ir.Value] = {}
    for value in [value for value in model.graph.initializers.values() if len(_kinds(value, nodes)) > 1]:
        for use in value.uses():
            kind = use.node.op_type
            if use.node.name not in nodes or use.idx not in weights.get(kind, ()):
                continue
            if (value, kind) not in copies:
                copies[value, kind] = _copy(model.graph, value, names.free(f"{value.name}_{kind}"))
            use.node.replace_input_with(use.idx, copies[value, kind])


def _kinds(value: ir.Value, nodes: Collection[str]) -> set[str]:
    """Return the kinds of operators that read a value; all nodes that are not named count as one kind."""
    return {use.node.op_type if use.node.name in nodes else "" for use in value.uses()}


def _copy(graph: ir.Graph, value: ir.Value, name: str) -> ir.Value:
    import onnx_ir as ir

    copy = ir.Value(name=name, type=value.type, shape=value.shape)
    copy.const_value = surgery.renamed(surgery.tensor(value), name)
    graph.register_initializer(copy)
    return copy
