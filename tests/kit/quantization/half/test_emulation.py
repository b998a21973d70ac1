"""Half precision on the CPU: what a GPU would round and what would overflow there, does so here."""

import graphs
import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper

from engine.kit.onnx import ir_models, onnx_files
from engine.kit.onnx.surgery import name_nodes
from engine.kit.quantization.half import emulation, half, ranges
from engine.runtimes.onnxruntime import session as ort


def lowered(text, tmp_path, kind="fp16", **weights):
    """The graph of nodes as text, which gives y [n] for x [n], with all of its nodes in half precision."""
    model = graphs.parsed(f"(float[n] x) => (float[n] y) {{ {text} }}", opset=20, **weights)
    graphs.changed(model, name_nodes)
    types = ranges.tensor_types(ir_models.of(model), tmp_path)
    graphs.changed(model, half.convert, {node.name for node in model.graph.node}, types, kind)
    onnx.checker.check_model(model, full_check=True)
    return model


def answer(model, tmp_path, x, *, emulate=emulation.emulate):
    graphs.changed(model, emulate)
    onnx_files.save(model, tmp_path)
    session = ort.session(tmp_path, threads=1, level="disabled")
    return ort.run(session, {"x": np.array(x, np.float32)})["y"]


def test_numbers_are_rounded_and_overflow_as_fp16_does(tmp_path):
    model = lowered("y = Identity(x)", tmp_path)
    assert answer(model, tmp_path, [70000, -70000, 1.0001, 1e-9]).tolist() == [np.inf, -np.inf, 1, 0]


def test_bf16_keeps_the_range_and_rounds_more(tmp_path):
    model = lowered("y = Identity(x)", tmp_path, "bf16")
    assert answer(model, tmp_path, [1e38, 1.001, 257]).tolist() == [pytest.approx(1e38, rel=4e-3), 1, 256]


def test_what_overflows_between_two_nodes_stays_infinite(tmp_path):
    """ONNX Runtime computes in float32 between them, and keeps what no GPU could."""
    model = lowered("big = Mul(x, thousand) y = Div(big, thousand)", tmp_path, thousand=np.float32(1000))
    assert answer(model, tmp_path, [1, 100]).tolist() == [1, np.inf]


def test_a_kernel_adds_up_in_float32_and_rounds_once(tmp_path):
    text = "wide = Unsqueeze(x, first) made = MatMul(wide, row) y = Squeeze(made, first)"
    model = lowered(text, tmp_path, row=np.full((4096, 1), 1 / 4096, np.float32), first=np.array([0]))
    assert answer(model, tmp_path, np.ones(4096)).tolist() == [1]  # one by one in fp16 the sum would stop short


def test_the_kinds_of_a_graph_are_told(tmp_path):
    assert emulation.kinds(lowered("y = Identity(x)", tmp_path)) == ["fp16"]
    assert emulation.kinds(lowered("y = Identity(x)", tmp_path, "bf16")) == ["bf16"]
    assert emulation.kinds(graphs.layers()) == []


def test_quantized_pairs_run_with_the_halves_around_them(tmp_path):
    text = "q = QuantizeLinear(x, scale, zero) y = DequantizeLinear(q, scale, zero)"
    model = lowered(text, tmp_path, scale=np.float32(0.5), zero=np.int8(0))
    assert TensorProto.FLOAT16 in {tensor.data_type for tensor in model.graph.initializer}
    assert answer(model, tmp_path, [0.6, 2.2, 1000]).tolist() == [0.5, 2, 63.5]


def test_a_graph_in_half_precision_from_elsewhere_is_emulated_by_its_inferred_types(tmp_path):
    text = "low = Cast<to = 10>(x) square = Mul(low, low) root = Sqrt(square) y = Cast<to = 1>(root)"
    model = graphs.parsed(f"(float[n] x) => (float[n] y) {{ {text} }}", opset=20)
    assert answer(model, tmp_path, [3, 300]).tolist() == [3, np.inf]


STEP = 2.0**-10
"""The distance of neighbours in TF32, from 1 to 2."""


def in_tf32(text, **weights):
    """Return a graph of nodes as text, which gives y [rows, 1] for x [rows, 2]."""
    stored = {name: np.array(values, np.float32) for name, values in weights.items()}
    return graphs.parsed(f"(float[rows, 2] x) => (float[rows, 1] y) {{ {text} }}", opset=20, **stored)


def answer_in_tf32(model, tmp_path, x):
    return answer(model, tmp_path, x, emulate=emulation.emulate_tf32)


@pytest.mark.parametrize(
    ("number", "rounded"),
    [
        (1 + STEP / 4, 1), (1 + STEP * 3 / 4, 1 + STEP), (1 + STEP / 2, 1), (1 + STEP * 3 / 2, 1 + 2 * STEP),
        (-1 - STEP * 3 / 4, -1 - STEP), (2 - STEP / 4, 2), (0.0, 0), (3.0, 3), (np.inf, np.inf),
    ],
)  # fmt: skip
def test_a_number_is_rounded_to_the_nearest_with_ten_bits(number, rounded):
    assert emulation.nearest_tf32(np.array(number, np.float32)) == np.float32(rounded)


def test_a_product_by_hand(tmp_path):
    """(1 + 2^-11 + 2^-12) * 1 becomes 1 + 2^-10, and 3 * (1 + 2^-12) becomes 3: both inputs are rounded."""
    model = in_tf32("y = MatMul(x, w)", w=[[1.0], [1 + 2.0**-12]])
    x = [[1 + 2.0**-11 + 2.0**-12, 0.0], [0.0, 3.0]]
    assert answer_in_tf32(model, tmp_path, x).tolist() == [[1 + STEP], [3.0]]


def test_the_sum_and_the_bias_stay_in_fp32(tmp_path):
    model = in_tf32("y = Gemm(x, w, b)", w=[[1.0], [1.0]], b=[2.0**-20])
    assert answer_in_tf32(model, tmp_path, [[1.0, 2.0**-15]]).tolist() == [[1 + 2.0**-15 + 2.0**-20]]


def test_what_is_no_product_is_not_rounded(tmp_path):
    model = in_tf32("same = Mul(x, w) y = ReduceMax(same, last)", w=[[1.0, 1.0]])
    model.graph.initializer.append(numpy_helper.from_array(np.array([1]), "last"))
    assert answer_in_tf32(model, tmp_path, [[1 + 2.0**-15, 0]]).tolist() == [[1 + 2.0**-15]]


def test_numbers_that_nodes_compute_are_rounded_like_stored_ones(tmp_path):
    numbers = np.random.default_rng(3).standard_normal((500, 2)).astype(np.float32) * 1000
    given = answer_in_tf32(in_tf32("n = Neg(x) y = MatMul(n, w)", w=[[1.0], [0.0]]), tmp_path, numbers)
    assert given[:, 0].tolist() == emulation.nearest_tf32(-numbers[:, 0]).tolist()


def test_a_number_near_the_end_of_fp32_stays_finite(tmp_path):
    model = in_tf32("y = MatMul(x, w)", w=[[1.0], [0.0]])
    assert answer_in_tf32(model, tmp_path, [[3e38, 0.0]]).tolist() == [[np.float32(3e38)]]


def test_a_weight_of_two_products_is_stored_once():
    model = in_tf32("a = MatMul(x, w) b = MatMul(a, w) y = MatMul(b, v)", w=np.eye(2), v=[[1.0], [1.0]])
    graphs.changed(model, emulation.emulate_tf32)
    names = sorted(tensor.name for tensor in model.graph.initializer if "factor" not in tensor.name)
    assert [name for name in names if "limit" not in name] == ["v_tf32", "w_tf32"]
