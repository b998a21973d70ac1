"""Wide: a model in half precision becomes a model in float32 with the same weights, inputs and outputs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from engine.kit.onnx import mapped_weights, onnx_files

if TYPE_CHECKING:
    import onnx

_TYPES = frozenset({"dtype", "output_datatype", "output_dtype", "softmax_precision", "stash_type", "to"})
"""The attributes of ONNX's operators that name the type of a result."""


def has_half(model: onnx.ModelProto, *names: str) -> bool:
    """Whether a stored tensor is in one of the named half precisions, or in any where none is named."""
    from onnx import TensorProto

    types = {TensorProto.DataType.Value(name) for name in names or ("FLOAT16", "BFLOAT16")}
    return any(tensor.data_type in types for tensor in onnx_files.tensors(model))


def widened(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with all of its half precisions in float32; `model` may be changed.

    Weights keep their numbers. An input or an output in half precision keeps its type, and a Cast stands beside it.
    Local functions become part of the graph.
    """
    import onnx

    if model.functions:
        model = onnx.inliner.inline_local_functions(model)
    for tensor in onnx_files.tensors(model):
        if _is_half(tensor.data_type):
            _widen_tensor(tensor)
    for node in onnx_files.nodes(model):
        for attribute in node.attribute:
            if attribute.name in _TYPES and _is_half(attribute.i):
                attribute.i = onnx.TensorProto.FLOAT
    kept = {value.name: value.type.tensor_type.elem_type for value in (*model.graph.input, *model.graph.output)}
    for graph in onnx_files.graphs(model.graph):
        for value in (*graph.input, *graph.output, *graph.value_info):
            _widen_type(value.type)
    _keep_ends(model.graph, {name: kind for name, kind in kept.items() if _is_half(kind)})
    return model


def _is_half(kind: int) -> bool:
    from onnx import TensorProto

    return kind in {TensorProto.FLOAT16, TensorProto.BFLOAT16}


def _widen_tensor(tensor: onnx.TensorProto) -> None:
    tensor.CopyFrom(mapped_weights.tensor_of(mapped_weights.array(tensor).astype("float32"), tensor.name))


def _widen_type(kind: onnx.TypeProto) -> None:
    from onnx import TensorProto

    for name in ("sequence_type", "optional_type"):
        if kind.HasField(name):
            _widen_type(getattr(kind, name).elem_type)
    if _is_half(kind.tensor_type.elem_type):
        kind.tensor_type.elem_type = TensorProto.FLOAT


def _keep_ends(graph: onnx.GraphProto, kept: dict[str, int]) -> None:
    """Give inputs and outputs their own types back; `kept` has the types of those in half precision by name."""
    from onnx import TensorProto, helper

    stored = {tensor.name for tensor in graph.initializer}
    inputs = [value for value in graph.input if value.name in kept and value.name not in stored]
    given = {value.name for value in inputs}
    outputs = [value for value in graph.output if value.name in kept and value.name not in given]
    renamed = _free_names(graph, [value.name for value in (*inputs, *outputs)])
    for each in onnx_files.graphs(graph):
        _rename(each, renamed, graph)
    casts = [helper.make_node("Cast", [value.name], [renamed[value.name]], to=TensorProto.FLOAT) for value in inputs]
    nodes = [*casts, *graph.node]
    nodes += [helper.make_node("Cast", [renamed[each.name]], [each.name], to=kept[each.name]) for each in outputs]
    del graph.node[:]
    graph.node.extend(nodes)
    for value in (*inputs, *(each for each in graph.output if each.name in kept)):
        value.type.tensor_type.elem_type = kept[value.name]


def _rename(graph: onnx.GraphProto, renamed: dict[str, str], main: onnx.GraphProto) -> None:
    """Rename tensors where nodes and bodies read or give them, but not the inputs and outputs of the main graph."""
    for node in graph.node:
        node.input[:] = [renamed.get(name, name) for name in node.input]
        node.output[:] = [renamed.get(name, name) for name in node.output]
    for value in (*graph.initializer, *graph.value_info, *(() if graph is main else graph.output)):
        value.name = renamed.get(value.name, value.name)


def _free_names(graph: onnx.GraphProto, names: list[str]) -> dict[str, str]:
    """Return a name that no tensor has for each of the names."""
    taken = set(_names(graph))
    free = {}
    for name in names:
        free[name] = f"{name}_wide"
        while free[name] in taken:
            free[name] += "_"
        taken.add(free[name])
    return free


def _names(graph: onnx.GraphProto) -> Iterator[str]:
    for each in onnx_files.graphs(graph):
        yield from (value.name for value in (*each.input, *each.initializer))
        yield from (name for node in each.node for name in node.output)
