"""int8 for the CPU: weights are quantized per channel ahead of time, activations at each run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import TYPE_CHECKING

from engine.errors import StepError
from engine.kit.onnx import names, onnx_files, surgery
from engine.kit.onnx.passes import linear_layers, tables, unshare
from engine.kit.quantization import mapped_quantizer
from engine.text import reasons

if TYPE_CHECKING:
    import onnx
    import onnx_ir as ir

    from engine.kit.onnx.passes.pipeline import Pipeline

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
    "Attention": ("QAttention",),
    "EmbedLayerNormalization": ("QEmbedLayerNormalization",),
    "Gather": ("Gather",),
    "LSTM": ("DynamicQuantizeLSTM",),
    "MatMul": ("MatMulInteger", "MatMulIntegerToFloat"),
}
"""The quantized forms of each operator."""
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


def quantize(
    passes: Pipeline, *, reduce_range: bool, without: Collection[str] = (), kept: Collection[str] = ()
) -> None:
    """Give the model int8 weights, one scale per output channel, and dynamically quantized activations.

    Embedding tables are stored in int8, too (`engine.kit.onnx.passes.tables`). The model must have opset 11 or later,
    folded constants, and Gemm or MatMul for its linear layers. `reduce_range` limits weights to 7 bits. The nodes
    named in `without` and `kept` stay as they are, and tables that nodes in `kept` read. Raises StepError where ONNX
    Runtime's quantizer fails.
    """
    fit = prepare(passes) - frozenset(without) - frozenset(kept)
    passes.run(unshare.unshare, fit, _WEIGHTS)
    unfit = [node.name or "" for node in passes.model.graph if node.op_type in _WEIGHTS and node.name not in fit]

    def with_int8_weights(model: onnx.ModelProto) -> onnx.ModelProto:
        model.metadata_props.add(key=_PREPARED, value="onnxruntime.quant")
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
        return quantized

    passes.run_tool("onnxruntime.quantization.quantize_dynamic", with_int8_weights)
    passes.run(tables.quantize, kept)


def prepare(passes: Pipeline) -> frozenset[str]:
    """Split Gemms into MatMul and Add, name every node, and return the names of the nodes that can be quantized."""
    passes.run(linear_layers.split)
    passes.run(names.name_nodes, with_output=True)  # ONNX Runtime's quantizer tells nodes apart by name
    return frozenset(node.name or "" for node in passes.model.graph if _has_quantized_form(node))


def counted(model: onnx.ModelProto) -> dict[str, int]:
    """Return the number of quantized operators of each kind, by the name of the kind before quantization."""
    import onnx

    small = {tensor.name for tensor in model.graph.initializer if tensor.data_type == onnx.TensorProto.INT8}
    counts = Counter(node.op_type for node in onnx_files.nodes(model) if node.op_type != "Gather")
    counts["Gather"] = sum(node.op_type == "Gather" and node.input[0] in small for node in model.graph.node)
    totals = {name: sum(counts[each] for each in quantized) for name, quantized in sorted(_BECOMES.items())}
    return {name: total for name, total in totals.items() if total}


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


def _has_quantized_form(node: ir.Node) -> bool:
    """Whether a node has constant float32 weights, and an equivalent quantized form that drops no input."""
    weights = [value for index in _WEIGHTS.get(node.op_type, ()) if (value := node.inputs[index]) is not None]
    if node.op_type not in _WEIGHTS or not all(map(surgery.is_float32, weights)):
        return False
    if node.op_type == "MatMul":
        return all(len(surgery.tensor(value).shape) == 2 for value in weights)  # noqa: PLR2004  [input, output]
    if node.op_type == "LSTM":
        # The quantizer drops `layout`, and reshapes weights in place, so two LSTMs must not share their weights.
        return all(len(value.uses()) == 1 for value in weights) and not node.attributes.get_int("layout")
    # The quantizer would silently drop an attention bias, or an input with positions.
    if any(value is not None for value in node.inputs[_WITHOUT_INPUTS_FROM[node.op_type] :]):
        return False
    if node.op_type == "Attention":
        return "qkv_hidden_sizes" not in node.attributes
    return len(node.outputs) <= _EMBEDDING_OUTPUTS
