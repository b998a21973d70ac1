"""ONNX Runtime's dynamic quantizer: which nodes it quantizes, prepared for it; large weights stay in files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from engine.errors import StepError
from engine.kit.onnx import mapped_weights, onnx_files, surgery
from engine.kit.onnx.passes import embedding_tables, linear_layers
from engine.kit.onnx.surgery import TensorNames
from engine.text import reasons

if TYPE_CHECKING:
    import numpy as np
    import onnx
    import onnx_ir as ir

    from engine.kit.onnx.ir_models import Pipeline

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
_PREPARED = "onnx.quant.pre_process"
"""The metadata name of a model prepared for ONNX Runtime's quantizer, which warns where the name is missing."""
_WITHOUT_INPUTS_FROM = {"Attention": 5, "EmbedLayerNormalization": 8}
"""For each operator, the index of the first input that the operator's quantized form lacks."""
_EMBEDDING_OUTPUTS = 2
"""The number of outputs of QEmbedLayerNormalization."""
_CHUNK = 4 << 20
"""The number of elements of a weight that are rounded at once."""


def quantize(
    passes: Pipeline, *, reduce_range: bool, without: Collection[str] = (), kept: Collection[str] = ()
) -> None:
    """Give the model int8 weights, one scale per output channel, and dynamically quantized activations.

    Embedding tables are stored in int8, too (`passes/embedding_tables`). The model must have opset 11 or later,
    folded constants, and Gemm or MatMul for its linear layers. `reduce_range` limits weights to 7 bits. The nodes
    named in `without` and `kept` stay as they are, and tables that nodes in `kept` read. Raises StepError where ONNX
    Runtime's quantizer fails.
    """
    fit = prepare(passes) - frozenset(without) - frozenset(kept)
    passes.run(unshare, fit, _WEIGHTS)
    unfit = [node.name or "" for node in passes.model.graph if node.op_type in _WEIGHTS and node.name not in fit]

    def with_int8_weights(model: onnx.ModelProto) -> onnx.ModelProto:
        model.metadata_props.add(key=_PREPARED, value="onnxruntime.quant")
        try:
            quantized = quantize_dynamic(model, excluded=unfit, reduce_range=reduce_range)
        except Exception as error:  # AssertionError, IndexError, ValueError and others
            raise StepError(
                "ONNX Runtime cannot quantize this model",
                reasons.facts(error),
                "build it with precision: fp32, or quantize it with a tool of your own and use the ONNX file",
            ) from error
        del quantized.metadata_props[:]
        return quantized

    passes.run_tool("onnxruntime.quantization.quantize_dynamic", with_int8_weights)
    passes.run(embedding_tables.quantize, kept)


def prepare(passes: Pipeline) -> frozenset[str]:
    """Split Gemms into MatMul and Add, name every node, and return the names of the nodes that can be quantized."""
    passes.run(linear_layers.split)
    passes.run(surgery.name_nodes, with_output=True)  # ONNX Runtime's quantizer tells nodes apart by name
    return frozenset(node.name or "" for node in passes.model.graph if _has_quantized_form(node))


def counted(model: onnx.ModelProto) -> dict[str, int]:
    """Return the number of quantized operators of each kind, by the name of the kind before quantization."""
    import onnx

    small = {tensor.name for tensor in model.graph.initializer if tensor.data_type == onnx.TensorProto.INT8}
    counts = Counter(node.op_type for node in onnx_files.nodes(model) if node.op_type != "Gather")
    counts["Gather"] = sum(node.op_type == "Gather" and node.input[0] in small for node in model.graph.node)
    totals = {name: sum(counts[each] for each in quantized) for name, quantized in sorted(_BECOMES.items())}
    return {name: total for name, total in totals.items() if total}


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


def quantize_dynamic(model: onnx.ModelProto, *, excluded: Sequence[str], reduce_range: bool) -> onnx.ModelProto:
    """Return the model with weights in int8, except those of the nodes named in `excluded`.

    Within `mapped_weights.spilling`, the new weights are stored in a file. Raises whatever ONNX Runtime's quantizer
    raises.
    """
    import onnx
    from onnxruntime.quantization import QuantizationMode, QuantType
    from onnxruntime.quantization.onnx_model import ONNXModel
    from onnxruntime.quantization.onnx_quantizer import ONNXQuantizer

    with mapped_weights.readable_by_tools():
        product = ONNXModel(_with_shapes(model))
        product.replace_gemm_with_matmul()
        quantizer: Any = ONNXQuantizer(
            _with_shapes(product.model),
            per_channel=True,
            reduce_range=reduce_range,
            mode=QuantizationMode.IntegerOps,
            static=True,  # else it does what stands above, with a copy of all weights in a file of its own
            weight_qType=QuantType.QInt8,
            activation_qType=QuantType.QUInt8,  # the only type that dynamic quantization gives activations
            tensors_range=None,
            nodes_to_quantize=[],
            nodes_to_exclude=list(excluded),
            op_types_to_quantize=sorted(_WEIGHTS),
            # Shape inference does not know fused operators, so types behind fused operators are unknown.
            extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT, "MatMulConstBOnly": True},
        )
        quantizer.static = False
        # The quantizer's own methods hold several copies of a weight in memory. Theirs and these give the same numbers.
        quantizer.quantize_initializer_impl = partial(_whole, quantizer)
        quantizer.quantize_weight_per_channel_impl = partial(_by_channel, quantizer)
        quantizer.quantize_model()
        quantizer.model.topological_sort()
    quantized: onnx.ModelProto = quantizer.model.model
    return quantized


def _whole(
    quantizer: Any,
    weight: onnx.TensorProto,
    code: int,
    reduce_range: bool,  # noqa: FBT001  the quantizer's own signature
    *_: bool,
) -> tuple[str, str, str]:
    """Round a weight with one scale; return the names of its integers, its zero point and its scale."""
    import numpy as np
    from onnxruntime.quantization import quant_utils

    values = quant_utils.tensor_proto_to_array(weight)
    symmetric = quantizer.is_weight_symmetric(code) if code == quantizer.weight_qType else False
    zero, scale = quant_utils.compute_data_quant_params(
        values.reshape(-1), code, symmetric, quantizer.reduce_range and reduce_range
    )
    return _added(quantizer, weight, code, np.asarray(zero), np.asarray(scale))


def _by_channel(
    quantizer: Any,
    name: str,
    code: int,
    axis: int,
    reduce_range: bool,  # noqa: FBT001  the quantizer's own signature
    *_: bool,
) -> tuple[str, str, str]:
    """Round a weight with a scale for each index of an axis; return the names of integers, zero points and scales."""
    import numpy as np
    from onnxruntime.quantization import quant_utils

    weight = next(tensor for tensor in quantizer.model.initializer() if tensor.name == name)
    values = quant_utils.tensor_proto_to_array(weight)
    others = tuple(index for index in range(values.ndim) if index != axis % values.ndim)
    symmetric, reduced = quantizer.is_weight_symmetric(code), quantizer.reduce_range and reduce_range
    extremes = np.stack([values.min(axis=others, initial=0), values.max(axis=others, initial=0)], axis=1)
    both = [quant_utils.compute_data_quant_params(pair, code, symmetric, reduced) for pair in extremes]
    shape = [-1 if index == axis % values.ndim else 1 for index in range(values.ndim)]
    zeros, scales = (np.stack(each).reshape(shape) for each in zip(*both, strict=True))
    return _added(quantizer, weight, code, zeros, scales)


def _added(
    quantizer: Any, weight: onnx.TensorProto, code: int, zeros: np.ndarray, scales: np.ndarray
) -> tuple[str, str, str]:
    """Add a weight's integers, zero points and scales to the quantizer's model, and return their names."""
    import numpy as np
    from onnx import helper
    from onnxruntime.quantization import quant_utils

    names = (f"{weight.name}_quantized", f"{weight.name}_zero_point", f"{weight.name}_scale")
    dims = [zeros.size] if zeros.ndim else []
    values = quant_utils.tensor_proto_to_array(weight)
    rounded = np.empty(values.shape, helper.tensor_dtype_to_np_dtype(code))
    rows = max(1, _CHUNK * len(values) // max(values.size, 1))
    for start in range(0, len(values), rows):
        chunk = slice(start, start + rows)
        zero, scale = (each[chunk] if each.shape[:1] == values.shape[:1] else each for each in (zeros, scales))
        rounded[chunk] = quant_utils.quantize_nparray(code, values[chunk], scale, zero)
    quantizer.model.initializer_extend(
        [
            helper.make_tensor(names[2], weight.data_type, dims, scales.reshape(-1).tolist()),
            helper.make_tensor(names[1], code, dims, zeros.reshape(-1).tolist()),
        ]
    )
    quantizer.model.initializer_extend([mapped_weights.tensor_of(rounded, names[0])])
    return names


def _with_shapes(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a copy of the model with inferred shapes; mapped weights stay mapped."""
    import onnx
    from onnxruntime.quantization.quant_utils import add_infer_metadata

    inferred = onnx.shape_inference.infer_shapes(model)
    add_infer_metadata(inferred)
    return inferred


def unshare(model: ir.Model, nodes: Collection[str], weights: Mapping[str, Sequence[int]]) -> None:
    """Give each kind of operator its own copy of a weight that the named nodes share with nodes of other kinds.

    `weights` lists the indices of each operator's inputs that are weights. ONNX Runtime's quantizer quantizes a shared
    weight once, for the first operator that reads the weight. Without a copy for each kind of operator, operators of a
    second kind would convert the shared weight back to floating point at every run.
    """
    names = TensorNames(model)
    copies: dict[tuple[ir.Value, str], ir.Value] = {}
    for value in [value for value in model.graph.initializers.values() if len(_kinds(value, nodes)) > 1]:
        for use in value.uses():
            kind = use.node.op_type
            if use.node.name not in nodes or use.idx not in weights.get(kind, ()):
                continue
            if (value, kind) not in copies:
                copies[value, kind] = _copy(model.graph, value, names.free(f"{value.name}_{kind}"))
            use.node.replace_input_with(use.idx, copies[value, kind])


def _kinds(value: ir.Value, nodes: Collection[str]) -> set[str]:
    """Return the kinds of operators that read a value; all nodes that are not named count as one kind."""
    return {use.node.op_type if use.node.name in nodes else "" for use in value.uses()}


def _copy(graph: ir.Graph, value: ir.Value, name: str) -> ir.Value:
    import onnx_ir as ir

    copy = ir.Value(name=name, type=value.type, shape=value.shape)
    copy.const_value = surgery.renamed(surgery.tensor(value), name)
    graph.register_initializer(copy)
    return copy
