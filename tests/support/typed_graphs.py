"""Graphs of one idea each, for what a strongly typed network refuses: the fake TensorRT and a real one read them."""

from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto, helper

F32, F16, BF16 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16
I8, U8, F8, I4 = TensorProto.INT8, TensorProto.UINT8, TensorProto.FLOAT8E4M3FN, TensorProto.INT4
I32, I64, BOOL = TensorProto.INT32, TensorProto.INT64, TensorProto.BOOL
WIDE, IMAGE = (64, 64), (1, 4, 8, 8)
_BYTES = {I8: 1, U8: 1, F8: 1, I4: 0.5}


@dataclass(frozen=True)
class Case:
    name: str
    model: onnx.ModelProto
    refused: str = ""
    """What the fake's error says; "" for a graph that is built."""
    sm: int = 86


def constant(name, kind, *shape, value=0.1):
    """Return a constant that is filled with a value; bytes of quantized types are zero."""
    count = int(np.prod(shape))
    if kind in _BYTES:
        return helper.make_tensor(name, kind, shape, bytes(int(np.ceil(count * _BYTES[kind]))), raw=True)
    return helper.make_tensor(name, kind, shape, [value] * count)


def graph(nodes, inputs, output, constants=(), *, opset=21):
    ins = [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in inputs]
    whole = helper.make_graph(nodes, "g", ins, [helper.make_tensor_value_info("y", *output)], list(constants))
    domains = [helper.make_opsetid("", opset), helper.make_opsetid("trt", 1)]
    return helper.make_model(whole, opset_imports=domains, ir_version=10)


def two(op, first, second, out=None, **attributes):
    """Return a graph of one node with two inputs of these types."""
    node = helper.make_node(op, ["a", "b"], ["y"], **attributes)
    return graph([node], [("a", first, WIDE), ("b", second, WIDE)], (out or first, None))


def one(op, kind, shape=WIDE, **attributes):
    return graph([helper.make_node(op, ["a"], ["y"], **attributes)], [("a", kind, shape)], (kind, None), opset=22)


def with_weights(op, kind, weights, shape=WIDE, **attributes):
    """Return a graph of one node whose further inputs are constants: (type, shape) each."""
    names = [f"w{place}" for place in range(len(weights))]
    constants = [constant(name, *given) for name, given in zip(names, ([k, *s] for k, s in weights), strict=True)]
    return graph([helper.make_node(op, ["a", *names], ["y"], **attributes)], [("a", kind, shape)], (kind, None),
                 constants, opset=22)  # fmt: skip


def quantized(kind, to, scale=None, *, value=0.1, zero=0):
    """Return a matrix product with both factors quantized per tensor and dequantized."""
    scale = kind if scale is None else scale
    point = constant("zero", to) if not zero else helper.make_tensor("zero", to, (), [zero])
    constants = [constant("scale", scale, value=value), constant("w", to, *WIDE), point]
    nodes = [
        helper.make_node("QuantizeLinear", ["a", "scale", "zero"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["d"]),
        helper.make_node("DequantizeLinear", ["w", "scale", "zero"], ["v"]),
        helper.make_node("MatMul", ["d", "v"], ["y"]),
    ]
    return graph(nodes, [("a", kind, WIDE)], (scale, WIDE), constants)


def weights_alone(kind, to, scale, scales=(), **attributes):
    """Return a matrix product with dequantized weights; `scales` is the shape of their scale."""
    constants = [constant("w", to, *WIDE), constant("scale", scale, *scales)]
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "scale"], ["v"], **attributes),
        helper.make_node("MatMul", ["a", "v"], ["y"]),
    ]
    return graph(nodes, [("a", kind, WIDE)], (kind, WIDE), constants)


def of_nvidia_domain(to):
    """Return a matrix product with a factor in NVIDIA's own operators, as ModelOpt wrote before ONNX had the types."""
    word = "FP8" if to == F8 else "INT4"
    blocks = {} if to == F8 else {"axis": 0, "block_size": 16}
    constants = [constant("w", to, *WIDE), constant("scale", F16, *(() if to == F8 else (4, 64)))]
    nodes = [
        helper.make_node(f"TRT_{word}DequantizeLinear", ["w", "scale"], ["v"], domain="trt", **blocks),
        helper.make_node("MatMul", ["a", "v"], ["y"]),
    ]
    return graph(nodes, [("a", F16, WIDE)], (F16, WIDE), constants)


_SAME = "must have same input types"
_BIAS = [(4, 4, 3, 3), (4,)]
CASES = [
    *(Case(f"{op} of two types", two(op, F32, F16, out), _SAME) for op, out in [
        *((op, None) for op in ("Add", "Sub", "Mul", "Div", "Max", "Min", "Sum", "Mean", "PRelu", "MatMul", "Gemm")),
        *((op, BOOL) for op in ("Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual")),
    ]),
    Case("Add of fp16 and bf16", two("Add", F16, BF16), _SAME),
    Case("Add of int64 and int32", two("Add", I64, I32), _SAME),
    Case("Concat of two types", two("Concat", F32, F16, axis=0), _SAME),
    Case("Einsum of two types", two("Einsum", F32, F16, equation="ij,jk->ik"), _SAME),
    Case("And of a number", two("And", BOOL, I32, BOOL), _SAME),
    *(Case(f"{op} of one type", two(op, kind, kind)) for op in ("Add", "MatMul", "Gemm") for kind in (F32, F16, BF16)),
    Case("Pow of two types", two("Pow", F32, F16)),
    Case("Pow by an integer", two("Pow", F32, I64)),
    Case("Where by a number", graph(
        [helper.make_node("Where", ["a", "b", "b"], ["y"])], [("a", F32, WIDE), ("b", F32, WIDE)], (F32, WIDE)),
        "must have type Bool"),
    Case("LayerNormalization with two outputs", graph(
        [helper.make_node("LayerNormalization", ["a", "w"], ["b", "y"])], [("a", F32, WIDE)], (F32, (64, 1)),
        [constant("w", F32, 64)]), "more than 1 output"),
    Case("Gather by a float", two("Gather", F32, F32), "must have type Int64 or Int32"),
    Case("Gather by an integer", two("Gather", F32, I32)),
    *(Case(f"Conv of {kinds}", with_weights("Conv", kinds[0], list(zip(kinds[1:], _BIAS, strict=True)), IMAGE,
                                            pads=[1, 1, 1, 1]), refused)
      for kinds, refused in [((F32, F32, F32), ""), ((F16, F16, F16), ""), ((BF16, BF16, BF16), ""),
                             ((F16, F32, F32), _SAME), ((F16, F16, F32), _SAME), ((F32, F32, F16), _SAME)]),
    Case("LayerNormalization with scales of fp32", with_weights(
        "LayerNormalization", F16, [(F32, (64,)), (F32, (64,))]), _SAME),
    Case("LayerNormalization with a bias of fp32", with_weights(
        "LayerNormalization", F16, [(F16, (64,)), (F32, (64,))]), _SAME),
    Case("LayerNormalization in fp16", with_weights("LayerNormalization", F16, [(F16, (64,)), (F16, (64,))])),
    Case("InstanceNormalization with scales of fp32", with_weights(
        "InstanceNormalization", F16, [(F32, (4,)), (F32, (4,))], IMAGE), _SAME),
    Case("BatchNormalization with scales of fp32", with_weights(
        "BatchNormalization", F16, [(F32, (4,))] * 4, IMAGE)),
    Case("Clip with a bound of fp32", with_weights("Clip", F16, [(F32, ())])),
    *(Case(f"{op} of an integer", one(op, I32), "unsupported input type")
      for op in ("Softmax", "Sigmoid", "Erf", "Tanh", "Exp", "Sqrt", "Gelu", "Floor", "Cos")),
    *(Case(f"{op} in bf16", one(op, BF16)) for op in ("Softmax", "Sigmoid", "Erf", "Tanh", "Exp", "Sqrt", "Gelu")),
    *(Case(f"{op} of truths", one(op, BOOL), "unsupported input type") for op in ("Relu", "Neg", "ReduceMean")),
    Case("Not of a number", one("Not", F32), "unsupported input type"),
    Case("Transpose of truths", one("Transpose", BOOL)),
    Case("an operator that no parser knows", one("Bernoulli", F32), "Plugin not found"),
    Case("a product of integers", two("MatMulInteger", I8, I8, I32), "Plugin not found"),
    *(Case(f"int8 of {kind}", quantized(kind, I8)) for kind in (F32, F16, BF16)),
    Case("int8 with a negative scale", quantized(F16, I8, value=-0.1), "Scale coefficients must all be positive"),
    Case("int8 with a zero scale", quantized(F16, I8, value=0.0), "Scale coefficients must all be positive"),
    Case("int8 with a zero point", quantized(F16, I8, zero=3), "Non-zero zero point"),
    Case("uint8", quantized(F16, U8), "unsupported input type of UINT8"),
    Case("int32 that is dequantized", graph(
        [helper.make_node("DequantizeLinear", ["w", "scale"], ["v"]), helper.make_node("Add", ["a", "v"], ["y"])],
        [("a", F32, WIDE)], (F32, WIDE), [constant("w", I32, 64, value=1), constant("scale", F32)]),
        "input has type Int32"),
    *(Case(f"weights in {to}, scales {scales}", weights_alone(F16, to, F16, scales, **attributes))
      for to, scales, attributes in [
          (I8, (), {}), (I8, (64,), {"axis": 1}), (I4, (4, 64), {"axis": 0, "block_size": 16}),
          (I4, (64, 2), {"axis": 1, "block_size": 32}), (I4, (64,), {"axis": 0})]),
    Case("weights of int4 with scales of fp32 beside fp16", weights_alone(
        F16, I4, F32, (4, 64), axis=0, block_size=16), _SAME),
    Case("weights of int8 with two blocked axes", weights_alone(
        F32, I8, F32, (4, 4), axis=0, block_size=16), "single blocking dimension"),
    Case("weights with too few scales", weights_alone(F32, I8, F32, (32,), axis=1), "number of scales"),
    *(Case(f"fp8 on SM{sm}", quantized(F16, F8), "" if sm >= 89 else "require hardware with FP8", sm)
      for sm in (75, 86, 89, 120)),
    Case("fp8 of fp32 with a scale of fp16", quantized(F32, F8, F16), "Could not infer", 89),
    Case("fp8 that is multiplied as it is", two("MatMul", F8, F8), "not consumed by IDequantizeLayer", 89),
    Case("fp8 that is made by a cast", graph(
        [helper.make_node("Cast", ["a"], ["y"], to=F8)], [("a", F32, WIDE)], (F8, WIDE)), "not produced by", 89),
    Case("int8 that is multiplied as it is", two("MatMul", I8, I8), "Could not infer"),
    *(Case(f"bf16 on SM{sm}", two("MatMul", BF16, BF16), "" if sm >= 80 else "require hardware with BF16", sm)
      for sm in (75, 86)),
    Case("fp16 on SM75", two("MatMul", F16, F16), sm=75),
    Case("int4 in NVIDIA's domain", of_nvidia_domain(I4)),
    Case("fp8 in NVIDIA's domain", of_nvidia_domain(F8), sm=89),
]  # fmt: skip
