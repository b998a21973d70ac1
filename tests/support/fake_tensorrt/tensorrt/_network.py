"""Networks: the nodes of an ONNX file with the types that onnx infers."""

from pathlib import Path

import onnx
from onnx.external_data_helper import load_external_data_for_model

from tensorrt import _nodes, _typed
from tensorrt._enums import DataType, LayerType, NetworkDefinitionCreationFlag
from tensorrt._logging import complain, register
from tensorrt._operators import CUSTOM, TYPES

_LAYERS = {
    "MatMul": "MATRIX_MULTIPLY", "Gemm": "MATRIX_MULTIPLY", "Conv": "CONVOLUTION", "Constant": "CONSTANT",
    "Shape": "SHAPE", "Cast": "CAST", "QuantizeLinear": "QUANTIZE", "DequantizeLinear": "DEQUANTIZE",
    "LayerNormalization": "NORMALIZATION",
}  # fmt: skip
_TAKE_SIZES = frozenset({"Reshape", "Expand", "Tile"})
"""Operators whose second input has the sizes of their output."""
PLUGINS = []
"""Operators that loaded libraries bring: one is called as its file."""


def dtype_of(elem_type):
    return DataType[_nodes.name_of(elem_type) or "FLOAT"]


class Dims(tuple):
    __slots__ = ()

    def __new__(cls, shape=()):
        if not isinstance(shape, list):
            raise TypeError("Dims are made of a list")
        return super().__new__(cls, shape)


class ITensor:
    __slots__ = ("dtype", "is_shape_tensor", "name", "shape")

    def __init__(self, name, dtype, shape, *, is_shape_tensor=False):
        self.name, self.dtype, self.shape, self.is_shape_tensor = name, dtype, shape, is_shape_tensor


class ILayer:
    __slots__ = ("_kind", "_outputs", "name")

    def __init__(self, name, kind, outputs):
        self.name, self._kind, self._outputs = name, kind, outputs

    type = property(lambda self: self._kind)
    num_outputs = property(lambda self: len(self._outputs))

    def get_output(self, index):
        return self._outputs[index]


class INetworkDefinition:
    __slots__ = ("_flags", "_inputs", "_kinds", "_layers", "_model")

    def __init__(self, flags):
        self._flags, self._model, self._layers, self._kinds, self._inputs = flags, None, [], set(), []

    num_layers = property(lambda self: len(self._layers))
    num_inputs = property(lambda self: len(self._inputs))

    def get_input(self, index):
        return self._inputs[index]

    def get_layer(self, index):
        return self._layers[index]

    def _fill(self, model, nodes):
        self._model = model
        sizes = {node.input[1] for node in model.graph.node if node.op_type in _TAKE_SIZES and len(node.input) > 1}
        sizes |= {name for node in model.graph.node if node.op_type == "Range" for name in node.input}
        filled = {tensor.name for tensor in model.graph.initializer}
        self._inputs = [
            ITensor(value.name, dtype_of(value.type.tensor_type.elem_type),
                    [dim.dim_value if dim.HasField("dim_value") else -1 for dim in value.type.tensor_type.shape.dim],
                    is_shape_tensor=value.name in sizes)
            for value in model.graph.input
            if value.name not in filled
        ]  # fmt: skip
        self._kinds = {kind for node in nodes for kind in (*node.inputs, *node.outputs)}
        types = {name: kind for node in nodes for name, kind in zip(node.proto.output, node.outputs, strict=True)}
        for node in model.graph.node:
            outputs = [ITensor(name, DataType[types.get(name) or "FLOAT"], None) for name in node.output]
            kind = LayerType[_LAYERS.get(node.op_type, "ELEMENTWISE")]
            self._layers.append(ILayer(node.name or f"node_of_{node.output[0]}", kind, outputs))


class ParserError:
    __slots__ = ("_name", "_operator", "_text")

    def __init__(self, operator, name, text):
        self._operator, self._name, self._text = operator, name, text

    def node_operator(self):
        return self._operator

    def node_name(self):
        return self._name

    def desc(self):
        return self._text


class OnnxParser:
    __slots__ = ("_errors", "_network")

    def __init__(self, network, logger):
        register(logger)
        self._network, self._errors = network, []

    num_errors = property(lambda self: len(self._errors))

    def get_error(self, index):
        return self._errors[index]

    def parse_from_file(self, model):
        try:
            read = onnx.load(model, load_external_data=False)
        except Exception:  # noqa: BLE001 - onnx raises protobuf's own
            complain("Failed to parse ONNX model from file")
            return False
        load_external_data_for_model(read, str(Path(model).parent))
        nodes = _nodes.read(read)
        for node in nodes:
            if not _is_known(node):
                text = 'creator && "Plugin not found, are the plugin name, version, and namespace correct?"'
                self._errors.append(ParserError(node.op, node.proto.name, text))
        if not self._errors and self._network._flags & 1 << NetworkDefinitionCreationFlag.STRONGLY_TYPED:
            for node, text in _typed.refusals(nodes):
                self._errors.append(ParserError(node.op, node.name, f"Invalid Node - {node.name}: {text}"))
        if self._errors:
            return False
        self._network._fill(read, nodes)
        return True


def _is_known(node):
    own = node.op in TYPES if node.proto.domain in ("", "ai.onnx") else node.op in CUSTOM
    return own or node.op in PLUGINS
