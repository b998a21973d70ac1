"""Operators of ONNX that TensorRT's parser reads, and the types of their first input.

Source: the operator matrix of onnx/onnx-tensorrt (docs/operators.md at 96e7811, TensorRT 10.1), as far as the parser of
TensorRT-RTX 1.7.1 agrees; where the two differ, the wider answer stands here, and `_typed` names the difference.
An operator that is not here has no evidence: the fake does not read it, and says its name.
"""

_FLOATS = frozenset({"FLOAT", "HALF", "BF16"})
_NUMBERS = _FLOATS | {"INT32", "INT64"}
_ANY = _NUMBERS | {"BOOL"}
_ALL = _ANY | {"UINT8", "INT8", "FP8", "INT4"}
"""The quantized types may be moved (docs/operators.md: they are reached from floating point, by quantization alone)."""

_BY_TYPES = (
    (_FLOATS,
     ("Acos Acosh Asin Asinh Atan Atanh AveragePool BatchNormalization Ceil Celu Conv ConvTranspose Cos Cosh CumSum"
     " DeformConv Dropout Einsum Elu Erf Exp Floor Gelu Gemm GlobalLpPool GlobalMaxPool GridSample"
     " GroupNormalization GRU HardSigmoid HardSwish Hardmax InstanceNormalization IsInf LayerNormalization LeakyRelu"
     " Log LogSoftmax LpNormalization LpPool LRN LSTM MatMul MaxPool MeanVarianceNormalization Mish"
     " PRelu QuantizeLinear Reciprocal Resize RNN Round Selu Sigmoid Sin Sinh Softmax Softplus Softsign Sqrt Tan Tanh"
     " ThresholdedRelu Upsample")),
    (_NUMBERS,
     ("Abs Add ArgMax ArgMin Clip DepthToSpace Div Equal GlobalAveragePool Greater GreaterOrEqual IsNaN Less"
     " LessOrEqual Max Mean Min Mod Mul Neg Pad Pow Range ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp"
     " ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare Relu ScatterElements"
     " ScatterND Shrink Sign SpaceToDepth Sub Sum TopK")),
    (_ANY, "EyeLike Gather GatherElements GatherND OneHot ReverseSequence Slice Split Tile Trilu Where"),
    (frozenset({"BOOL"}), "And Not Or Xor"),
    (_ALL,
     ("Cast CastLike Concat Constant ConstantOfShape DequantizeLinear Expand Flatten Identity If Loop NonMaxSuppression"
     " NonZero RandomNormal RandomNormalLike RandomUniform RandomUniformLike Reshape RoiAlign Scan Shape Size Squeeze"
     " Transpose Unsqueeze")),
)  # fmt: skip
TYPES = {name: types for types, names in _BY_TYPES for name in names.split()}
"""Operator -> TensorRT's names of the types that its first input may have."""
CUSTOM = {
    "TRT_FP8QuantizeLinear": "FP8", "TRT_FP8DequantizeLinear": "", "TRT_INT4QuantizeLinear": "INT4",
    "TRT_INT4DequantizeLinear": "",
}  # fmt: skip
"""Operators of NVIDIA's own domain `trt` -> the type of their output; "" is that of the scale (onnxOpImporters.cpp)."""
