"""Small graphs whose TensorRT-RTX engines show int8 convolutions, int8 products, fused products and attention."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

CHANNELS = 64


class Graph:
    """A graph that is written node by node, with the input x in float32 and the output y in float32."""

    def __init__(self, shape):
        self.nodes, self.stored, self.shape = [], [], shape
        self.random = np.random.default_rng(0)

    def store(self, values):
        self.stored.append(numpy_helper.from_array(values, f"stored_{len(self.stored)}"))
        return self.stored[-1].name

    def add(self, operator, *inputs, **attributes):
        name = f"{operator}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [name], name, **attributes))
        return name

    def quantized(self, value):
        scale, zero = self.store(np.array(0.05, np.float16)), self.store(np.array(0, np.int8))
        return self.add("DequantizeLinear", self.add("QuantizeLinear", value, scale, zero), scale, zero)

    def weight(self, shape, *, int8, axis):
        if not int8:
            return self.store(self.random.normal(0, 0.05, shape).astype(np.float16))
        codes = self.random.integers(-127, 128, shape).astype(np.int8)
        scales = self.store(np.full(shape[axis], 0.001, np.float16))
        return self.add("DequantizeLinear", self.store(codes), scales, axis=axis)

    def model(self, value):
        self.add("Cast", value, to=TensorProto.FLOAT)
        self.nodes[-1].output[0] = "y"
        ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", self.shape), ("y", None))]
        graph = helper.make_graph(self.nodes, "g", ends[:1], ends[1:], self.stored)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def convolutions(*, int8):
    """Return two convolutions, each with a bias, a residual addition and a Relu."""
    graph = Graph(["batch", CHANNELS, 16, 16])
    value = graph.add("Cast", "x", to=TensorProto.FLOAT16)
    for _ in range(2):
        read = graph.quantized(value) if int8 else value
        weight = graph.weight((CHANNELS, CHANNELS, 3, 3), int8=int8, axis=0)
        bias = graph.store(np.zeros(CHANNELS, np.float16))
        added = graph.add("Add", graph.add("Conv", read, weight, bias, pads=[1, 1, 1, 1]), read)
        value = graph.add("Relu", added)
    return graph.model(value)


def feed_forward(*, int8):
    """Return two linear layers with a Gelu between them."""
    graph = Graph(["batch", 128, 384])
    value = graph.add("Cast", "x", to=TensorProto.FLOAT16)
    for shape in ((384, 1536), (1536, 384)):
        weight = graph.weight(shape, int8=int8, axis=1)
        product = graph.add("MatMul", graph.quantized(value) if int8 else value, weight)
        value = graph.add("Add", product, graph.store(np.ones(shape[1], np.float16)))
        value = graph.add("Gelu", value) if shape[1] > shape[0] else value
    return graph.model(value)


def attention():
    """Return attention with six heads and a softmax in float32 between casts."""
    graph = Graph(["batch", 128, 384])
    value = graph.add("Cast", "x", to=TensorProto.FLOAT16)
    heads = []
    for _ in range(3):
        product = graph.add("MatMul", value, graph.weight((384, 384), int8=False, axis=1))
        parted = graph.add("Reshape", product, graph.store(np.array([0, 0, 6, 64], np.int64)))
        heads.append(graph.add("Transpose", parted, perm=[0, 2, 1, 3]))
    scores = graph.add("MatMul", heads[0], graph.add("Transpose", heads[1], perm=[0, 1, 3, 2]))
    scores = graph.add("Cast", graph.add("Mul", scores, graph.store(np.array(0.125, np.float16))), to=TensorProto.FLOAT)
    weights = graph.add("Cast", graph.add("Softmax", scores, axis=-1), to=TensorProto.FLOAT16)
    joined = graph.add("Transpose", graph.add("MatMul", weights, heads[2]), perm=[0, 2, 1, 3])
    return graph.model(graph.add("Reshape", joined, graph.store(np.array([0, 0, 384], np.int64))))


def write(folder, model):
    """Write a model as `model.onnx` into a folder, and return the folder."""
    folder.mkdir(parents=True)
    onnx.save(model, folder / "model.onnx")
    return folder
