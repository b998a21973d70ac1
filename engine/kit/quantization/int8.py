"""int8 for the CPU: weights are quantized per channel ahead of time, activations at each run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from engine.errors import StepError
from engine.kit.onnx import onnx_files, topology
from engine.kit.onnx.passes import linear_layers
from engine.kit.quantization import mapped_quantizer, tables
from engine.text import reasons

if TYPE_CHECKING:
    import onnx

OLDEST_OPSET = 11
"""The first opset with DynamicQuantizeLinear."""

_WEIGHTS = {
    "Attention": (1,),
    "EmbedLayerNormalization": (2, 3, 4, 5, 6),
    "LSTM": (1, 2),
    "MatMul": (1,),
}
"""The operators that can be quantized, and the indices of their inputs that are weights."""
_BECOMES = {
    "Attention": "QAttention",
    "EmbedLayerNormalization": "QEmbedLayerNormalization",
    "Gather": "Gather",
    "LSTM": "DynamicQuantizeLSTM",
    "MatMul": "MatMulInteger",
}
"""The quantized form of each operator."""
_CARRIERS = {*_WEIGHTS, "Conv", "ConvTranspose", "Einsum", "GRU", "Gather", "Gemm", "RNN"}
"""The operators that are reported where their weights stay in floating point.

Convolutions keep floating-point weights, because dynamic quantization makes convolutions slower and less exact.
"""
_MARKS = ("QLinear", "DynamicQuantize", "QuantizeLinear", "DequantizeLinear", "QAttention", "QGemm", "QEmbed")
_ENDS = ("Integer", "IntegerToFloat", "NBits", "Bnb4", "Fp4")
_FEW_BITS = ("INT8", "UINT8", "INT4", "UINT4", "INT2", "UINT2", "FLOAT8", "FLOAT4")
_PREPARED = "onnx.quant.pre_process"
"""The metadata name of a model prepared for ONNX Runtime's quantizer, which warns where the name is missing."""
_WITHOUT_INPUTS_FROM = {"Attention": 5, "EmbedLayerNormalization": 8}
"""For each operator, the index of the first input that the operator's quantized form lacks."""
_EMBEDDING_OUTPUTS = 2
"""The number of outputs of QEmbedLayerNormalization."""


def signs(model: onnx.ModelProto) -> list[str]:
    """Return the signs that a model is already quantized: quantizing operators and types of low-bit weights."""
    from onnx import TensorProto

    operators = {node.op_type for node in onnx_files.nodes(model)}
    quantizing = {name for name in operators if name.startswith(_MARKS) or name.endswith(_ENDS)}
    types = {tensor.data_type for tensor in onnx_files.tensors(model) if len(tensor.dims) > 1}
    names = {TensorProto.DataType.Name(number) for number in types}
    return sorted(quantizing | {f"{name} weights" for name in names if name.startswith(_FEW_BITS)})


def quantize(model: onnx.ModelProto, *, reduce_range: bool) -> onnx.ModelProto:
    """Return the model with int8 weights, one scale per output channel, and dynamically quantized activations.

    Embedding tables are stored in int8, too (`engine.kit.quantization.tables`). `model` must have opset 11 or later,
    folded constants, and Gemm or MatMul for its linear layers; `model` is changed. `reduce_range` limits weights to 7
    bits. Raises StepError where ONNX Runtime's quantizer fails.
    """
    model.metadata_props.add(key=_PREPARED, value="onnxruntime.quant")
    fit = prepare(model)
    _unshare(model, fit)
    unfit = [node.name for node in model.graph.node if node.op_type in _WEIGHTS and node.name not in fit]
    try:
        quantized = mapped_quantizer.quantize_dynamic(
            model, operators=_WEIGHTS, excluded=unfit, reduce_range=reduce_range
        )
    except Exception as error:  # AssertionError, IndexError, ValueError and others
        raise StepError(
            "ONNX Runtime cannot quantize this model",
            reasons.facts(error),
            "build it with precision: fp32, or quantize it with a tool of your own and use the ONNX file",
        ) from error
    del quantized.metadata_props[:]
    tables.quantize(quantized)
    return quantized


def prepare(model: onnx.ModelProto) -> set[str]:
    """Split Gemms into MatMul and Add, name every node, and return the names of the nodes that can be quantized."""
    linear_layers.split(model)
    topology.name_nodes(model, with_output=True)  # ONNX Runtime's quantizer tells nodes apart by name
    return {node.name for node in _fit(model)}


def counted(model: onnx.ModelProto) -> dict[str, int]:
    """Return the number of quantized operators of each kind, by the name of the kind before quantization."""
    import onnx

    small = {tensor.name for tensor in model.graph.initializer if tensor.data_type == onnx.TensorProto.INT8}
    counts = Counter(node.op_type for node in onnx_files.nodes(model) if node.op_type != "Gather")
    counts["Gather"] = sum(node.op_type == "Gather" and node.input[0] in small for node in model.graph.node)
    return {name: counts[quantized] for name, quantized in sorted(_BECOMES.items()) if counts[quantized]}


def left(model: onnx.ModelProto) -> list[str]:
    """Return the number and name of the operators that still have floating-point weights, for example "2 Conv"."""
    import onnx

    floats = {onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE, onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16}
    counts: Counter[str] = Counter()
    weights: set[str] = set()  # bodies of If and Loop see the weights of the graphs around them
    for graph in onnx_files.graphs(model.graph):
        weights |= {t.name for t in graph.initializer if t.data_type in floats and sum(size > 1 for size in t.dims) > 1}
        counts.update(n.op_type for n in graph.node if n.op_type in _CARRIERS and not weights.isdisjoint(n.input))
    return [f"{count} {name}" for name, count in sorted(counts.items())]


def _fit(model: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    """Yield the nodes that have constant weights and an equivalent quantized form."""
    tensors = topology.initializers(model.graph)
    users = Counter(name for node in model.graph.node for name in node.input)
    for node in model.graph.node:
        if node.op_type in _WEIGHTS and _has_quantized_form(node, tensors, users):
            yield node


def _has_quantized_form(node: onnx.NodeProto, tensors: dict[str, onnx.TensorProto], users: Counter[str]) -> bool:
    """Whether the quantized form of a node is equivalent: its weights are constant float32, and no input is dropped."""
    weights = [tensors.get(node.input[index]) for index in _WEIGHTS[node.op_type] if node.input[index]]
    if not all(tensor is not None and _float32(tensor) for tensor in weights):
        return False
    if node.op_type == "MatMul":
        return all(tensor is not None and len(tensor.dims) == 2 for tensor in weights)  # noqa: PLR2004  [input, output]
    if node.op_type == "LSTM":
        # The quantizer drops `layout`, and reshapes weights in place, so two LSTMs must not share their weights.
        shared = any(users[node.input[index]] > 1 for index in _WEIGHTS["LSTM"])
        return not shared and not topology.whole_number(node, "layout")
    # The quantizer would silently drop an attention bias, or an input with positions.
    if any(node.input[_WITHOUT_INPUTS_FROM[node.op_type] :]):
        return False
    if node.op_type == "Attention":
        return not any(attribute.name == "qkv_hidden_sizes" for attribute in node.attribute)
    return len(node.output) <= _EMBEDDING_OUTPUTS


def _float32(tensor: onnx.TensorProto) -> bool:
    import onnx

    return bool(tensor.data_type == onnx.TensorProto.FLOAT)


def _unshare(model: onnx.ModelProto, fit: set[str]) -> None:
    """Give each kind of operator its own copy of a weight that several kinds of operators share.

    ONNX Runtime's quantizer quantizes a shared weight once, for the first operator that reads the weight. Without a
    copy for each kind of operator, operators of a second kind would convert the shared weight back to floating point at
    every run.
    """
    users: dict[str, set[str]] = {}
    for node in model.graph.node:
        for name in node.input:
            users.setdefault(name, set()).add(node.op_type if node.name in fit else "")
    tensors = topology.initializers(model.graph)
    shared = {name for name in tensors if len(users.get(name, ())) > 1}
    copies: set[str] = set()
    for node in model.graph.node:
        if node.name not in fit or node.op_type not in _WEIGHTS:
            continue
        for index in _WEIGHTS[node.op_type]:
            if index < len(node.input) and node.input[index] in shared:
                copy = f"{node.input[index]}_{node.op_type}"
                if copy not in copies:
                    model.graph.initializer.add().CopyFrom(tensors[node.input[index]])
                    model.graph.initializer[-1].name = copy
                    copies.add(copy)
                node.input[index] = copy
