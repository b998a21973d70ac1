"""Types of a strongly typed network: what TensorRT refuses, each rule with its source.

"RTX" in a source: TensorRT-RTX 1.7.1, which has TensorRT's parser and network, refuses the same graph
(tests/runtimes/tensorrt/test_fake_typing.py builds it with both). "parser" is onnx/onnx-tensorrt at 96e7811,
"operators" NVIDIA's "TensorRT Operators" (docs.nvidia.com/deeplearning/tensorrt/operators), "matrix" NVIDIA's support
matrix (docs.nvidia.com/deeplearning/tensorrt/archives/tensorrt-1010/support-matrix).

Where evidence lacks, or is there both ways, nothing is refused:
- int4 below SM80: RTX refuses it, and NVIDIA's matrix of TensorRT 10 has no column for it.
- int8 with a scale of another type than its input: NVIDIA's table of Quantize (both T1) refuses it, and RTX builds it.
- int8 or fp8 in blocks: NVIDIA's tables of TensorRT 10 have blocks for int4 only, and RTX builds them.
- int8 that is computed with undequantized: the parser's table does not list it, and RTX builds some.
- HardSwish or Mish in bf16: RTX refuses it, and the parser's table of 10.1 lists HardSwish.
- Relu or IsNaN of integers: the parser's table lists it, and RTX refuses some.
"""

import numpy as np

from tensorrt._operators import CUSTOM, TYPES

_WORDS = {"FLOAT": "Float", "HALF": "Half", "BF16": "BFloat16", "INT8": "Int8", "INT32": "Int32", "INT64": "Int64",
          "BOOL": "Bool", "UINT8": "UInt8", "FP8": "FP8", "INT4": "Int4"}  # fmt: skip
_FLOATS = ("FLOAT", "HALF", "BF16")
_FROM_QUANTIZED = {"DequantizeLinear", "TRT_FP8DequantizeLinear", "TRT_INT4DequantizeLinear", "Concat", "Reshape",
                   "Transpose", "Squeeze", "Unsqueeze", "Flatten", "Expand", "Shape", "Identity"}  # fmt: skip
_TO_QUANTIZED = {"QuantizeLinear", "TRT_FP8QuantizeLinear", "TRT_INT4QuantizeLinear", "Constant", "Concat", "Reshape",
                 "Transpose", "Squeeze", "Unsqueeze", "Flatten", "Expand", "Identity"}  # fmt: skip
_BOTH = """Add Sub Mul Div Max Min Mod Equal Greater GreaterOrEqual Less LessOrEqual And Or Xor Sum Mean PRelu Concat
MatMul Gemm Einsum Range""".split()  # noqa: SIM905 - a list of so many names is read as a text
_FIRST = {"Conv": 3, "ConvTranspose": 3, "LayerNormalization": 3, "InstanceNormalization": 3, "GroupNormalization": 3}
_ALIKE = {
    **{name: slice(None) for name in _BOTH}, **{name: slice(count) for name, count in _FIRST.items()},
    "Where": slice(1, 3), "ScatterND": slice(0, None, 2), "ScatterElements": slice(0, None, 2),
}  # fmt: skip
_SINGLE = ("LayerNormalization", "MaxPool")


def operands_alike(node):
    kinds = [kind for kind in node.inputs[_ALIKE[node.op]] if kind] if node.op in _ALIKE else []
    if len(set(kinds)) > 1:
        return f"{node.op} must have same input types. But they are of types {' and '.join(map(_WORDS.get, kinds))}"
    return ""


def supported_type(node):
    kind = next(iter(node.inputs), "")
    allowed = TYPES.get(node.op) if node.proto.domain in ("", "ai.onnx") else None
    moved = kind in ("INT8", "FP8", "INT4")  # see `quantized_moves`
    if kind and allowed is not None and kind not in allowed and not moved:
        return f"Found unsupported input type of {_WORDS[kind]}: {node.op}"
    return ""


def condition_is_bool(node):
    if node.op == "Where" and node.inputs[0] not in ("", "BOOL"):
        return f"condition input has type {_WORDS[node.inputs[0]]} but must have type Bool"
    return ""


def indices_are_integers(node):
    if node.op in ("Gather", "GatherElements") and node.inputs[1] not in ("", "INT32", "INT64"):
        return f"indices input has type {_WORDS[node.inputs[1]]} but must have type Int64 or Int32"
    return ""


def one_output(node):
    if node.op in _SINGLE and sum(map(bool, node.proto.output)) > 1:
        return f"This version of TensorRT doesn't support more than 1 output for {node.op} nodes"
    return ""


def scale_is_positive(node):
    if _is_qdq(node) and node.constants[1] is not None and not (node.constants[1] > 0).all():
        return "Scale coefficients must all be positive"
    return ""


def zero_point_is_zero(node):
    if _is_qdq(node) and len(node.constants) > 2 and node.constants[2] is not None and node.constants[2].any():
        return "Non-zero zero point is not supported"
    return ""


def no_unsigned(node):
    if _is_qdq(node) and "UINT8" in (node.inputs[0], *node.inputs[2:]):
        return f"Found unsupported input type of UINT8: {node.op}"
    return ""


def scale_is_float(node):
    if _is_qdq(node) and node.inputs[1] not in ("", *_FLOATS):
        return f"scale has type {_WORDS[node.inputs[1]]} but must have type Float, Half, or BFloat16"
    return ""


def dequantized_is_quantized(node):
    if node.op == "DequantizeLinear" and node.inputs[0] not in ("", "INT8", "FP8", "INT4", "UINT8"):
        return f"input has type {_WORDS[node.inputs[0]]} but must have type FP8, FP4, Int4, or Int8"
    return ""


def scale_of_fp8_alike(node):
    if node.op == "QuantizeLinear" and node.outputs[0] == "FP8" and node.inputs[:2] == ("FLOAT", "HALF"):
        return "Could not infer output types for operation: quantize of f32 with a scale of f16"
    return ""


def scales_fit(node):
    if not _is_qdq(node) or not node.shapes[1] or node.shapes[0] is None or np.prod(node.shapes[1]) == 1:
        return ""
    data, scale = node.shapes[:2]
    if len(scale) == 1 and len(data) != 1:
        axis = _attribute(node, "axis", 1)
        if -len(data) <= axis < len(data) and data[axis] not in (None, scale[0]):
            return f"The number of scales is not equal to the number of output channels: {data[axis]} and {scale[0]}"
    elif len(scale) != len(data):
        return f"Invalid rank for the scale tensor. Rank = {len(scale)}"
    elif None not in data:
        if sum(a != b for a, b in zip(data, scale, strict=True)) > 1:
            return "Only a single blocking dimension is allowed"
        if any(a % b for a, b in zip(data, scale, strict=True)):
            return "Inferred block size is not an integer"
    return ""


def products_of_int8(node):
    if node.op in ("MatMul", "Gemm") and "INT8" in node.inputs[:2]:
        return "Could not infer output types for operation: einsum of i8, which is not dequantized"
    return ""


def quantized_moves(node):
    for kind in ("FP8", "INT4"):
        if kind in node.inputs[:1] and node.op not in _FROM_QUANTIZED:
            return f"Tensor {node.proto.input[0]} has datatype {kind} but is not consumed by IDequantizeLayer"
        if kind in node.outputs[:1] and node.op not in _TO_QUANTIZED:
            return f"Tensor {node.proto.output[0]} has datatype {kind} but is not produced by IQuantizeLayer"
    return ""


RULES = {
    operands_alike: "RTX (validateTypes of each layer); operators: ElementWise, MatrixMultiply, Convolution, Select",
    supported_type: "parser, docs/operators.md; RTX",
    condition_is_bool: "RTX (checkType); operators: Select",
    indices_are_integers: "RTX (checkType); operators: Gather",
    one_output: "parser, docs/operators.md, column Restrictions; RTX",
    scale_is_positive: "parser, QuantDequantLinearHelper; RTX",
    zero_point_is_zero: "parser, QuantDequantLinearHelper; RTX",
    no_unsigned: "parser, QuantDequantLinearHelper; RTX",
    scale_is_float: "operators: Quantize, T1 is float16, bfloat16 or float32; Dequantize, T3",
    dequantized_is_quantized: "RTX (checkType); operators: Dequantize, T1",
    scale_of_fp8_alike: "operators: Quantize, input and scale are both of type T1; RTX for fp8",
    scales_fit: "parser, QuantDequantLinearHelper; RTX",
    products_of_int8: "RTX",
    quantized_moves: "RTX (validateQuantizedTypes)",
}
"""What is refused when the graph is read -> its source. In this order: the first that speaks is the error."""


def refusals(nodes):
    """Yield (node, text) for each node that a rule refuses."""
    for node in nodes:
        text = next(filter(None, (rule(node) for rule in RULES)), "")
        if text:
            yield node, text


def _attribute(node, name, default):
    return next((each.i for each in node.proto.attribute if each.name == name), default)


def _is_qdq(node):
    return node.op in ("QuantizeLinear", "DequantizeLinear") or node.op in CUSTOM
