"""Wide: a model in half precision becomes a model in float32 with the same weights, inputs and outputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from engine.kit.onnx import ir_models, mapped_weights, onnx_files, surgery
from engine.kit.onnx.surgery import TensorNames

if TYPE_CHECKING:
    import onnx
    import onnx_ir as ir

_TYPES = frozenset({"dtype", "output_datatype", "output_dtype", "softmax_precision", "stash_type", "to"})
"""The attributes of ONNX's operators that name the type of a result."""


def has_half(model: onnx.ModelProto, *names: str) -> bool:
    """Whether a stored tensor is in one of the named half precisions, or in any where none is named."""
    from onnx import TensorProto

    types = {TensorProto.DataType.Value(name) for name in names or ("FLOAT16", "BFLOAT16")}
    return any(tensor.data_type in types for tensor in onnx_files.tensors(model))


def widened(message: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with all of its half precisions in float32.

    Weights keep their numbers. An input or an output in half precision keeps its type, and a Cast stands beside it.
    Local functions become part of the graph.
    """
    import onnx_ir as ir
    from onnx_ir.passes.common import InlinePass

    model = InlinePass()(ir_models.of(message)).model
    ends = (*model.graph.inputs, *model.graph.outputs)
    kept = {
        value: kind
        for value in ends
        if (kind := value.dtype) and _is_half(kind) and not (value.is_graph_input() and value.is_initializer())
    }
    for graph in model.graphs():
        for stored in graph.initializers.values():
            if _is_half(stored.dtype):
                surgery.restore(stored, surgery.numbers(stored).astype("float32"))
        for value in (*graph.inputs, *(output for node in graph for output in node.outputs)):
            if _is_half(value.dtype):
                value.dtype = ir.DataType.FLOAT
        for node in graph:
            _widen_attributes(node)
    _keep_ends(model, kept)
    return ir_models.proto(model)


def _is_half(kind: ir.DataType | int | None) -> bool:
    import onnx_ir as ir

    return kind in {ir.DataType.FLOAT16, ir.DataType.BFLOAT16}


def _widen_attributes(node: ir.Node) -> None:
    """Let constants, and results whose type an attribute names, be in float32."""
    import onnx_ir as ir

    for name, attribute in list(node.attributes.items()):
        if attribute.type == ir.AttributeType.TENSOR and _is_half(attribute.value.dtype):
            values = mapped_weights.tensor_of(attribute.value.numpy().astype("float32"), attribute.value.name)
            node.attributes.add(ir.AttrTensor(name, ir.from_proto(values)))
        elif name in _TYPES and attribute.type == ir.AttributeType.INT and _is_half(attribute.value):
            node.attributes.add(ir.AttrInt64(name, int(ir.DataType.FLOAT)))


def _keep_ends(model: ir.Model, kept: Mapping[ir.Value, ir.DataType]) -> None:
    """Give inputs and outputs their own types back, with a Cast between them and the graph."""
    import onnx_ir as ir

    names = TensorNames(model)
    graph, casts = model.graph, []
    given = [value for value in kept if value.is_graph_input()]
    for value in given:
        value.dtype = kept[value]
        if value.uses():
            cast = surgery.node("Cast", [None], names.free(f"{value.name}_wide"), "", to=int(ir.DataType.FLOAT))
            value.replace_all_uses_with(cast.outputs[0])
            cast.replace_input_with(0, value)
            casts.append(cast)
    if casts:
        graph.insert_before(graph[0], casts)
    for value in [value for value in kept if value not in given]:
        name, value.name = value.name or "", names.free(f"{value.name}_wide")
        cast = surgery.node("Cast", [value], name, "", to=int(kept[value]))
        cast.outputs[0].type, cast.outputs[0].shape = ir.TensorType(kept[value]), value.shape
        graph.append(cast)
        graph.outputs[:] = [cast.outputs[0] if each is value else each for each in graph.outputs]
