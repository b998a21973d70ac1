"""The multiplications of a model in each precision, from the kernels that OpenVINO chooses for this CPU."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import TYPE_CHECKING

from engine.runtimes.openvino import compiled, ir, quantizer
from engine.runtimes.runner import Tally

if TYPE_CHECKING:
    import numpy as np
    import openvino

_CONVOLUTIONS = frozenset({"Convolution", "GroupConvolution"})
_TRANSPOSED = frozenset({"ConvolutionBackpropData", "GroupConvolutionBackpropData"})
_RECURRENT = {"GRUSequence": 3, "LSTMSequence": 4, "RNNSequence": 3}
"""Recurrent operators, and the index of the input with the weights of the input; the weights of the state follow."""
_COUNTED = _CONVOLUTIONS | _TRANSPOSED | _RECURRENT.keys() | {"MatMul"}
_KINDS = {
    **dict.fromkeys(_CONVOLUTIONS, "Conv"), **dict.fromkeys(_TRANSPOSED, "ConvTranspose"), "GRUSequence": "GRU",
    "LSTMSequence": "LSTM", "RNNSequence": "RNN",
}  # fmt: skip
"""The names that ONNX has for these operators."""
_MOVING = frozenset({"Convert", "Multiply", "Reshape", "Squeeze", "Subtract", "Transpose", "Unsqueeze"})
"""Operators that may stand between a quantized tensor and the product that reads it."""
_FUSED = "Subgraph"
"""OpenVINO's kernels that compute several operators, and name the precision of their first input only.

They multiply integers where both factors are quantized.
"""
_APART = "/WithoutBiases"
"""The end of the name of an operator whose bias is an operator of its own in the model, and no more in the kernel."""
_FOLLOWERS = 3
"""The most operators behind a convolution that become part of it: a factor, a bias and the factor of its integers."""
_NAMES = {"f32": "fp32", "f16": "fp16", "bf16": "bf16", "i8": "int8", "u8": "int8", "f64": "fp64"}


def multiplications(model: openvino.Model, inputs: Mapping[str, np.ndarray]) -> Tally:
    """Return the precision of kernels, such as "int8" -> the number of multiplications in this precision.

    Matrix products, convolutions and recurrent layers are counted, from their shapes for `inputs`; those that depend on
    no input are not, because OpenVINO computes them while it compiles the model. The kernels are those of OpenVINO's
    execution graph for these shapes; nothing runs. Raises StepError where OpenVINO cannot compile
    the model for these shapes.
    """
    fixed = ir.reshaped(model, {value.any_name: inputs[value.any_name].shape for value in model.inputs})
    on_this_cpu = compiled.compiled(fixed, threads=1)
    kernels, floating = _kernels(on_this_cpu), on_this_cpu.get_property("INFERENCE_PRECISION_HINT").get_type_name()
    tally = Tally()
    for node, count in _counted(fixed):
        kind = node.get_type_name()
        tally.add(_KINDS.get(kind, kind), _precision(node, kernels, floating), count)
    return tally


def by_operator(model: openvino.Model, inputs: Mapping[str, np.ndarray]) -> dict[str, int]:
    """Return the name of each operator that multiplies -> the number of its multiplications for `inputs`."""
    fixed = ir.reshaped(model, {value.any_name: inputs[value.any_name].shape for value in model.inputs})
    return {str(node.get_friendly_name()): count for node, count in _counted(fixed)}


def _counted(model: openvino.Model) -> Iterator[tuple[openvino.Node, int]]:
    """Yield each operator that depends on an input and multiplies, with the number of its multiplications."""
    computed = ir.computed(model)
    for node in model.get_ordered_ops():
        count = _count(node) if node.get_friendly_name() in computed else 0
        if count:
            yield node, count


def _kernels(model: openvino.CompiledModel) -> dict[str, tuple[str, str]]:
    """Return the name of each operator -> the kind and the precision of the kernel that computes the operator."""
    kernels: dict[str, tuple[str, str]] = {}
    for node in model.get_runtime_model().get_ordered_ops():
        facts = node.get_rt_info()
        kernel = (facts["layerType"].astype(str), facts["runtimePrecision"].astype(str))
        for name in _operators(facts["originalLayersNames"].astype(str)):
            kernels.setdefault(name, kernel)
    return kernels


def _operators(names: str) -> Iterator[str]:
    """Yield the names of a kernel's operators, and of operators whose dequantization is part of the kernel."""
    for name in names.split(","):
        yield name.removesuffix(_APART)
        if "/Dequantization" in name:
            yield name.rpartition("/Dequantization")[0]


def _count(node: openvino.Node) -> int:
    """Return the number of multiplications of an operator.

    The number is 0 for an operator that is not counted, and where its shapes depend on the numbers of an input.
    """
    kind = node.get_type_name()
    if kind not in _COUNTED:
        return 0
    values = [*node.inputs(), node.output(0)]
    if any(value.get_partial_shape().is_dynamic for value in values):
        return 0
    sizes: list[list[int]] = [list(value.get_shape()) for value in values]
    *shapes, result = sizes
    if kind == "MatMul":
        turned = node.get_attributes().get("transpose_a", False) and len(shapes[0]) > 1
        return prod(result) * shapes[0][-2 if turned else -1]
    if kind in _RECURRENT:  # each step of each row multiplies the input and the state by all of their weights
        weights = shapes[_RECURRENT[kind] :][:2]
        return prod(shapes[0][:2]) * sum(map(prod, weights))
    # Filters are [outputs, inputs, ...], or [inputs, outputs, ...] of transposed ones; groups come before both.
    filters = shapes[1][2 if kind.startswith("Group") else 1 :]
    return prod(shapes[0] if kind in _TRANSPOSED else result) * prod(filters)


def _precision(node: openvino.Node, kernels: Mapping[str, tuple[str, str]], floating: str) -> str:
    """Return the precision of the kernel that computes an operator; `floating` is that of floating-point kernels.

    A kernel with weights in int8 alone does not say whether it rounds activations to int8, too.
    """
    if quantizer.has_stored_codes(node) and not _is_quantized(node.input_value(0)):
        return "int8 or floating point with int8 weights"
    kind, precision = kernels.get(_named(node, kernels), ("", floating))
    if kind == _FUSED:
        precision = "i8" if all(_is_quantized(node.input_value(i)) for i in range(2)) else floating
    return _NAMES.get(precision, precision)


def _named(node: openvino.Node, kernels: Mapping[str, tuple[str, str]]) -> str:
    """Return the name by which the kernels know an operator.

    A convolution whose factors and biases follow as operators of their own has the names of these operators alone,
    because the factors become part of its weights.
    """
    for _ in range(_FOLLOWERS + 1):
        name = str(node.get_friendly_name()).removesuffix(_APART)
        readers = [each.get_node() for each in node.output(0).get_target_inputs()]
        readers = [each for each in readers if each.get_type_name() != "ShapeOf"]
        if name in kernels or len(readers) != 1:
            return name
        [node] = readers
    return name


def _is_quantized(value: openvino.Output) -> bool:
    """Whether a FakeQuantize or a stored tensor of 8 bits gives a value, through operators that move or scale it."""
    node = value.get_node()
    while node.get_type_name() in _MOVING:
        node = node.input_value(0).get_node()
    return node.get_type_name() == "FakeQuantize" or node.get_element_type().get_type_name() in {"i8", "u8"}
