"""Networks: the nodes of an ONNX file with the types that onnx infers."""

from pathlib import Path

import onnx
from onnx import TensorProto
from onnx.external_data_helper import load_external_data_for_model

from tensorrt._enums import DataType, LayerType
from tensorrt._logging import complain, register

_TYPES = {
    "FLOAT": "FLOAT", "FLOAT16": "HALF", "BFLOAT16": "BF16", "INT8": "INT8", "INT32": "INT32", "INT64": "INT64",
    "BOOL": "BOOL", "UINT8": "UINT8", "FLOAT8E4M3FN": "FP8", "INT4": "INT4",
}  # fmt: skip
_LAYERS = {
    "MatMul": "MATRIX_MULTIPLY", "Gemm": "MATRIX_MULTIPLY", "Conv": "CONVOLUTION", "Constant": "CONSTANT",
    "Shape": "SHAPE", "Cast": "CAST", "QuantizeLinear": "QUANTIZE", "DequantizeLinear": "DEQUANTIZE",
    "LayerNormalization": "NORMALIZATION",
}  # fmt: skip
PLUGINS = []
"""Operators that loaded libraries bring: one is called as its file."""


def dtype_of(elem_type):
    return DataType[_TYPES.get(TensorProto.DataType.Name(elem_type), "FLOAT")]


class Dims(tuple):
    __slots__ = ()

    def __new__(cls, shape=()):
        if not isinstance(shape, list):
            raise TypeError("Dims are made of a list")
        return super().__new__(cls, shape)


class ITensor:
    __slots__ = ("dtype", "name", "shape")

    def __init__(self, name, dtype, shape):
        self.name, self.dtype, self.shape = name, dtype, shape


class ILayer:
    __slots__ = ("_kind", "_outputs", "name")

    def __init__(self, name, kind, outputs):
        self.name, self._kind, self._outputs = name, kind, outputs

    type = property(lambda self: self._kind)
    num_outputs = property(lambda self: len(self._outputs))

    def get_output(self, index):
        return self._outputs[index]


class INetworkDefinition:
    __slots__ = ("_flags", "_layers", "_model")

    def __init__(self, flags):
        self._flags, self._model, self._layers = flags, None, []

    num_layers = property(lambda self: len(self._layers))

    def get_layer(self, index):
        return self._layers[index]

    def _fill(self, model):
        self._model = model
        known = onnx.shape_inference.infer_shapes(model).graph
        types = {v.name: v.type.tensor_type.elem_type for v in (*known.value_info, *known.output, *known.input)}
        for node in model.graph.node:
            outputs = [ITensor(name, dtype_of(types.get(name, TensorProto.FLOAT)), None) for name in node.output]
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
        known = {schema.name for schema in onnx.defs.get_all_schemas()}
        for node in read.graph.node:
            if node.op_type not in known and node.op_type not in PLUGINS:
                text = 'creator && "Plugin not found, are the plugin name, version, and namespace correct?"'
                self._errors.append(ParserError(node.op_type, node.name, text))
        if self._errors:
            return False
        self._network._fill(read)
        return True
