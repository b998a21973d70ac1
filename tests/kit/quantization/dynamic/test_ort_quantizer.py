"""The mapped quantizer gives the numbers of ONNX Runtime's own, and holds no weight in memory afterwards."""

import graphs
import numpy as np
import onnx
import pytest
from graphs import FLOAT
from onnxruntime import quantization

from engine.kit.onnx import ir_models, mapped_weights
from engine.kit.quantization.dynamic import ort_quantizer

SIZE, WIDE = 96, 700


def model():
    """Return a model of an LSTM in both directions, a product, an Attention and a fused embedding."""
    product = np.random.default_rng(1).standard_normal((2 * SIZE, WIDE)).astype(np.float32)
    product[:, 7] = 0  # a channel without a range
    product[:, 8] = np.abs(product[:, 8])
    nodes = (
        "[embed] embedded, length = com.microsoft.EmbedLayerNormalization(ids, , table, places, , gamma, beta) "
        "[attend] attended = com.microsoft.Attention<num_heads = 2>(embedded, qkv, qkv_bias) "
        f'[lstm] both = LSTM<hidden_size = {SIZE}, direction = "bidirectional">(attended, w, r, b) '
        "[turn] turned = Transpose<perm = [0, 2, 1, 3]>(both) [flatten] flat = Reshape(turned, shape) "
        "[multiply] y = MatMul(flat, product)"
    )
    return graphs.parsed(
        f"(int32[batch, tokens] ids) => (float[batch, tokens, {WIDE}] y) {{ {nodes} }}",
        domains=("com.microsoft",), table=(300, SIZE), places=(64, SIZE), gamma=(SIZE,), beta=(SIZE,),
        qkv=(SIZE, 3 * SIZE), qkv_bias=(3 * SIZE,), w=(2, 4 * SIZE, SIZE), r=(2, 4 * SIZE, SIZE), b=(2, 8 * SIZE),
        shape=np.array([0, 0, 2 * SIZE]), product=product,
    )  # fmt: skip


OPERATORS = ("Attention", "EmbedLayerNormalization", "LSTM", "MatMul")


@pytest.mark.parametrize("reduce_range", [False, True])
def test_weights_are_rounded_as_by_the_quantizer_itself(reduce_range, tmp_path):
    quantization.quantize_dynamic(
        model(), tmp_path / "model.onnx", op_types_to_quantize=list(OPERATORS), per_channel=True,
        reduce_range=reduce_range, weight_type=quantization.QuantType.QInt8,
        extra_options={"DefaultTensorType": FLOAT},
    )  # fmt: skip
    with mapped_weights.spilling(tmp_path):
        mapped = ort_quantizer.quantize_dynamic(model(), excluded=(), reduce_range=reduce_range)
    large = [tensor.name for tensor in mapped.graph.initializer if mapped_weights.extent(tensor) is not None]
    assert large == ["product_quantized"]
    theirs = onnx.load(tmp_path / "model.onnx")
    assert list(mapped.graph.node) == list(theirs.graph.node)
    assert stored(mapped) == stored(theirs)
    assert "table_quantized" in stored(mapped)


def stored(model):
    arrays = {tensor.name: mapped_weights.array(tensor) for tensor in model.graph.initializer}
    return {name: (array.dtype, array.shape, array.tobytes()) for name, array in arrays.items()}


def unshared(readers, nodes):
    """Return what each node reads as its weight, after `nodes` got copies of their own."""
    text = " ".join(f"[n{index}] y{index} = {kind}(x, w)" for index, kind in enumerate(readers))
    outputs = ", ".join(f"float[4, 4] y{index}" for index in range(len(readers)))
    model = ir_models.of(graphs.parsed(f"(float[4, 4] x) => ({outputs}) {{ {text} }}", w=(4, 4)))
    ort_quantizer.unshare(model, nodes, {"MatMul": (1,), "Gemm": (1,)})
    return [node.inputs[1].name for node in model.graph], sorted(model.graph.initializers)


@pytest.mark.parametrize(
    ("readers", "nodes", "read", "stored"),
    [
        (["MatMul", "Gemm", "MatMul"], {"n0", "n1", "n2"}, ["w_MatMul", "w_Gemm", "w_MatMul"],
         ["w", "w_Gemm", "w_MatMul"]),
        (["MatMul", "MatMul"], {"n1"}, ["w", "w_MatMul"], ["w", "w_MatMul"]),
        (["MatMul", "MatMul"], {"n0", "n1"}, ["w", "w"], ["w"]),
    ],
    ids=["one copy for each kind", "a node that stays keeps the weight", "one kind shares it"],
)  # fmt: skip
def test_kinds_of_operators_share_no_weight(readers, nodes, read, stored):
    assert unshared(readers, nodes) == (read, stored)
