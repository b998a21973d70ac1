"""The nodes of an ONNX model, those of subgraphs included, with the types that TensorRT infers for them."""

from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from tensorrt._operators import CUSTOM

NAMES = {
    "FLOAT": "FLOAT", "DOUBLE": "FLOAT", "FLOAT16": "HALF", "BFLOAT16": "BF16", "INT8": "INT8", "INT32": "INT32",
    "INT64": "INT64", "BOOL": "BOOL", "UINT8": "UINT8", "FLOAT8E4M3FN": "FP8", "INT4": "INT4",
}  # fmt: skip
"""ONNX's types -> TensorRT's. DOUBLE is read as FLOAT (docs/operators.md of the parser)."""


@dataclass(frozen=True)
class Node:
    """A node with the types of its inputs and outputs as TensorRT names them ("" is unknown), and its constants."""

    proto: onnx.NodeProto
    inputs: tuple
    outputs: tuple
    constants: tuple
    shapes: tuple

    name = property(lambda self: self.proto.name or f"node_of_{self.proto.output[0]}")
    op = property(lambda self: self.proto.op_type)


def read(model):
    """Return the nodes of a model, those of subgraphs included, with their types.

    Types that the file only declares do not count: TensorRT infers all of them from the inputs and the constants.
    """
    bare = onnx.ModelProto()
    bare.CopyFrom(model)
    _undeclare(bare.graph)
    return list(_nodes(onnx.shape_inference.infer_shapes(bare).graph, {}, {}, {}))


def _undeclare(graph):
    del graph.value_info[:]
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _undeclare(attribute.g)


def _nodes(graph, kinds, shapes, constants):
    kinds, shapes, constants = dict(kinds), dict(shapes), dict(constants)
    for value in (*graph.input, *graph.value_info):
        kinds[value.name] = name_of(value.type.tensor_type.elem_type)
        shapes[value.name] = _shape(value.type.tensor_type)
    declared = {value.name: name_of(value.type.tensor_type.elem_type) for value in graph.output}
    for tensor in graph.initializer:
        kinds[tensor.name], shapes[tensor.name], constants[tensor.name] = _constant(tensor)
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            name = node.output[0]
            kinds[name], shapes[name], constants[name] = _constant(node.attribute[0].t)
        inputs = tuple(kinds.get(name, "") for name in node.input)
        for name in node.output:
            if name and not kinds.get(name):
                kinds[name] = _out(node, inputs) if node.domain == "trt" else declared.get(name) or ""
        outputs = tuple(kinds.get(name, "") for name in node.output)
        looked_at = node.input[:3] if node.op_type.lower().endswith("quantizelinear") else ()
        values = tuple(_value(constants.get(name)) for name in looked_at)
        yield Node(node, inputs, outputs, values, tuple(shapes.get(name) for name in node.input))
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _nodes(attribute.g, kinds, shapes, constants)


def _out(node, inputs):
    return CUSTOM.get(node.op_type) or (inputs[1] if len(inputs) > 1 else "")


def name_of(elem_type):
    """Return TensorRT's name of a type of ONNX, or "" for one that it does not have."""
    return NAMES.get(TensorProto.DataType.Name(elem_type), "")


def _constant(tensor):
    return name_of(tensor.data_type), list(tensor.dims), tensor


def _value(tensor):
    return None if tensor is None else np.asarray(numpy_helper.to_array(tensor), np.float32)


def _shape(kind):
    if not kind.HasField("shape"):
        return None
    return [dim.dim_value if dim.HasField("dim_value") else None for dim in kind.shape.dim]
