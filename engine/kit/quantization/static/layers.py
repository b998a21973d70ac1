"""Layers: the convolutions and products of a graph that a CPU computes faster in int8, with the reasons for others."""

# benchmarks/int8_convolutions.py measures the limits below: one layer between floating-point operators, in int8 (with
# its QuantizeLinear and DequantizeLinear) against fp32, CPU time of one thread, ONNX Runtime 1.31.1, AVX-512 with VNNI.
# Dense 1x1 convolutions gain 1.2 to 2.4 times from 20 inputs on, and nothing with 16 (1.0 to 1.1); at one place they
# lose (0.8 to 0.9). Dense larger windows gain 1.1 to 3.9 times from 72 multiplications per output on, and lose with 27
# (0.7, the first layer of most networks). Grouped convolutions gain from 20 inputs per group on (1.3 to 1.6), and lose
# with 16 or fewer (0.6). Depthwise convolutions always lose (0.6 to 0.9).

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from engine.kit.onnx import surgery

if TYPE_CHECKING:
    import onnx_ir as ir

CONVOLUTION = "Conv"
KINDS = (CONVOLUTION, "Gemm", "MatMul")
"""The operators that are quantized."""
_LEAST_INPUTS = 20
"""The least number of input channels of a 1x1 convolution, or of one group of a grouped convolution, that gains."""
_LEAST_WINDOW = 64
"""The least number of multiplications per output of a dense convolution with a larger window that gains."""
_MATRIX = 2


@dataclass(frozen=True)
class StaticLayer:
    """A convolution or product that can be quantized, by the names of its tensors.

    `output` is the tensor that leaves the layer: of a convolution with only a Relu or Clip behind it, the output of
    that operator, which ONNX Runtime then drops, because the range of an unsigned integer already clips.
    """

    kind: str
    result: str
    source: str
    output: str
    has_bias: bool
    channels: int
    """The axis of the weights that counts the outputs of the layer."""

    @property
    def is_convolution(self) -> bool:
        """Whether the layer is a convolution, whose output is quantized, too."""
        return self.kind == CONVOLUTION


@dataclass(frozen=True)
class GainingLayers:
    """The layers that gain from int8, and the reason why each other convolution or product stays in floating point."""

    layers: tuple[StaticLayer, ...]
    left: Mapping[str, str]
    """The output of a node -> the reason."""


def find(
    model: ir.Model, multiplications: Mapping[ir.Node, int], kept: Mapping[str, str] = MappingProxyType({})
) -> GainingLayers:
    """Return the layers of the main graph that gain from int8; `multiplications` has those of each node in one run.

    The run is on one row, so that the multiplications of a convolution tell at how many places its window stands.
    `kept` has the names of further nodes that stay as they are, with the reasons.
    """
    layers: list[StaticLayer] = []
    left: dict[str, str] = {}
    for node in model.graph:
        if node.op_type not in KINDS:
            continue
        reason = kept.get(node.name or "") or _reason(node, multiplications[node])
        if reason:
            left[surgery.output_names(node)[0]] = reason
        else:
            layers.append(_layer(node))
    return GainingLayers(tuple(layers), left)


def are_dense(model: ir.Model) -> int:
    """Return the number of convolutions that gain from int8, as far as their weights tell."""
    convolutions = (node for node in model.graph if node.op_type == CONVOLUTION)
    return sum(not _reason(node, None) for node in convolutions)


def _layer(node: ir.Node) -> StaticLayer:
    kind = node.op_type
    (result,) = surgery.output_names(node)
    output = _clipped(node.outputs[0]) if kind == CONVOLUTION else result
    has_bias = len(node.inputs) > _MATRIX and node.inputs[_MATRIX] is not None
    channels = 0 if kind == CONVOLUTION or node.attributes.get_int("transB") else 1
    return StaticLayer(kind, result, surgery.input_names(node)[0], output, has_bias, channels)


def _clipped(value: ir.Value) -> str:
    """Return the name of a convolution's output, or of the output of a Relu or Clip that alone reads it."""
    users = [use.node for use in value.uses()]
    if len(users) == 1 and users[0].op_type in {"Relu", "Clip"} and not value.is_graph_output():
        return users[0].outputs[0].name or ""
    return value.name or ""


def _reason(node: ir.Node, multiplications: int | None) -> str:
    """Return why a layer stays in floating point; an empty text for a layer that gains from int8."""
    weight = node.inputs[1]
    if weight is None or not surgery.is_float32(weight):
        return "its weights are no stored float32 tensor"
    if node.inputs[0] is None or node.inputs[0].is_initializer():
        return "its input is constant"
    shape = surgery.shape(weight)
    bias = node.inputs[_MATRIX] if len(node.inputs) > _MATRIX else None
    if bias is not None and not surgery.is_float32(bias):
        return "its bias is no stored float32 tensor"
    if node.op_type == "Gemm" and not _is_plain(node, shape, bias):
        return "it scales or transposes a factor, or its bias is no row"
    if node.op_type != CONVOLUTION:
        return "" if len(shape) == _MATRIX and 1 not in shape else "its weights are no matrix"
    return _loss(shape, node.attributes.get_int("group", 1), multiplications)


def _loss(shape: Sequence[int], groups: int, multiplications: int | None) -> str:
    """Return why int8 would make a convolution with weights [outputs, inputs per group, ...] slower."""
    size = 1
    for extent in shape:
        size *= extent
    inputs, window = shape[1], size // max(1, shape[0] * shape[1])
    if groups > 1 and inputs == 1:
        return "depthwise convolutions are slower in int8"
    if groups > 1 or window == 1:
        if inputs < _LEAST_INPUTS:
            return f"with {inputs} inputs per output it is slower in int8"
    elif inputs * window < _LEAST_WINDOW:
        return f"with {inputs * window} inputs per output it is slower in int8"
    if multiplications is not None and multiplications <= size:
        return "its window stands at one place only, so that it is too small to gain"
    return ""


def _is_plain(node: ir.Node, shape: Sequence[int], bias: ir.Value | None) -> bool:
    """Whether a Gemm multiplies its input as it is, and adds one number per output."""
    outputs = shape[0 if node.attributes.get_int("transB") else 1]
    is_row = bias is None or surgery.shape(bias) == (outputs,)
    scales = any(node.attributes.get_float(name, 1.0) != 1 for name in ("alpha", "beta"))
    return is_row and not scales and not node.attributes.get_int("transA")
