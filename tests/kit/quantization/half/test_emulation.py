"""Half precision on the CPU: what a GPU would round and what would overflow there, does so here."""

import graphs
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from engine.kit.onnx import ir_models, onnx_files
from engine.kit.onnx.surgery import name_nodes
from engine.kit.quantization.half import emulation, half, ranges
from engine.runtimes.onnxruntime import session as ort

X = ("x", graphs.FLOAT, ["n"])
Y = ("y", graphs.FLOAT, ["n"])


def lowered(nodes, tmp_path, kind="fp16", weights=()):
    """The graph with all of its nodes in half precision."""
    model = graphs.graph(nodes, [X], [Y], list(weights), opset=20)
    graphs.changed(model, name_nodes)
    types = ranges.tensor_types(ir_models.of(model), tmp_path)
    graphs.changed(model, half.convert, {node.name for node in model.graph.node}, types, kind)
    onnx.checker.check_model(model, full_check=True)
    return model


def answer(model, tmp_path, x, *, emulated=True):
    if emulated:
        graphs.changed(model, emulation.emulate)
    onnx_files.save(model, tmp_path)
    session = ort.session(tmp_path, threads=1, level="disabled")
    return ort.run(session, {"x": np.array(x, np.float32)})["y"]


def test_numbers_are_rounded_and_overflow_as_fp16_does(tmp_path):
    model = lowered([helper.make_node("Identity", ["x"], ["y"])], tmp_path)
    assert answer(model, tmp_path, [70000, -70000, 1.0001, 1e-9]).tolist() == [np.inf, -np.inf, 1, 0]


def test_bf16_keeps_the_range_and_rounds_more(tmp_path):
    model = lowered([helper.make_node("Identity", ["x"], ["y"])], tmp_path, "bf16")
    assert answer(model, tmp_path, [1e38, 1.001, 257]).tolist() == [pytest.approx(1e38, rel=4e-3), 1, 256]


def test_what_overflows_between_two_nodes_stays_infinite(tmp_path):
    thousand = numpy_helper.from_array(np.array(1000, np.float32), "thousand")
    nodes = [helper.make_node("Mul", ["x", "thousand"], ["big"]), helper.make_node("Div", ["big", "thousand"], ["y"])]
    assert answer(lowered(nodes, tmp_path, weights=[thousand]), tmp_path, [1, 100]).tolist() == [1, np.inf]


def test_without_emulation_the_cpu_hides_that(tmp_path):
    """Why there is an emulation: ONNX Runtime computes in float32 and keeps what no GPU could."""
    thousand = numpy_helper.from_array(np.array(1000, np.float32), "thousand")
    nodes = [helper.make_node("Mul", ["x", "thousand"], ["big"]), helper.make_node("Div", ["big", "thousand"], ["y"])]
    plain = answer(lowered(nodes, tmp_path, weights=[thousand]), tmp_path, [1, 100], emulated=False)
    assert plain.tolist() == [1, 100]


def test_a_kernel_adds_up_in_float32_and_rounds_once(tmp_path):
    row = numpy_helper.from_array(np.full((4096, 1), 1 / 4096, np.float32), "row")
    nodes = [
        helper.make_node("Unsqueeze", ["x", "first"], ["wide"]),
        helper.make_node("MatMul", ["wide", "row"], ["made"]),
        helper.make_node("Squeeze", ["made", "first"], ["y"]),
    ]
    first = numpy_helper.from_array(np.array([0], np.int64), "first")
    model = lowered(nodes, tmp_path, weights=[row, first])
    assert answer(model, tmp_path, np.ones(4096)).tolist() == [1]  # one by one in fp16 the sum would stop short


def test_the_kinds_of_a_graph_are_told(tmp_path):
    node = helper.make_node("Identity", ["x"], ["y"])
    assert emulation.kinds(lowered([node], tmp_path)) == ["fp16"]
    assert emulation.kinds(lowered([helper.make_node("Identity", ["x"], ["y"])], tmp_path, "bf16")) == ["bf16"]
    assert emulation.kinds(graphs.layers()) == []


def test_quantized_pairs_run_with_the_halves_around_them(tmp_path):
    scale = numpy_helper.from_array(np.array(0.5, np.float32), "scale")
    zero = numpy_helper.from_array(np.array(0, np.int8), "zero")
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["y"]),
    ]
    model = lowered(nodes, tmp_path, weights=[scale, zero])
    stored = {tensor.data_type for tensor in model.graph.initializer}
    assert TensorProto.FLOAT16 in stored
    assert answer(model, tmp_path, [0.6, 2.2, 1000]).tolist() == [0.5, 2, 63.5]


def test_a_graph_in_half_precision_from_elsewhere_is_emulated_by_its_inferred_types(tmp_path):
    nodes = [
        helper.make_node("Cast", ["x"], ["low"], to=TensorProto.FLOAT16),
        helper.make_node("Mul", ["low", "low"], ["square"]),
        helper.make_node("Sqrt", ["square"], ["root"]),
        helper.make_node("Cast", ["root"], ["y"], to=TensorProto.FLOAT),
    ]
    model = graphs.graph(nodes, [X], [Y], opset=20)
    assert answer(model, tmp_path, [3, 300]).tolist() == [3, np.inf]


STEP = 2.0**-10
"""The distance of neighbours in TF32, from 1 to 2."""
TF32_X = ("x", graphs.FLOAT, ["rows", 2])
TF32_Y = ("y", graphs.FLOAT, ["rows", 1])


def answer_in_tf32(nodes, weights, tmp_path, x, inputs=(TF32_X,)):
    model = graphs.graph(nodes, list(inputs), [TF32_Y], weights, opset=20)
    graphs.changed(model, emulation.emulate_tf32)
    onnx_files.save(model, tmp_path)
    session = ort.session(tmp_path, threads=1, level="disabled")
    return ort.run(session, {"x": np.array(x, np.float32)})["y"]


def stored(name, values):
    return numpy_helper.from_array(np.array(values, np.float32), name)


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
    weight = stored("w", [[1.0], [1 + 2.0**-12]])
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    x = [[1 + 2.0**-11 + 2.0**-12, 0.0], [0.0, 3.0]]
    assert answer_in_tf32(nodes, [weight], tmp_path, x).tolist() == [[1 + STEP], [3.0]]


def test_the_sum_and_the_bias_stay_in_fp32(tmp_path):
    weights = [stored("w", [[1.0], [1.0]]), stored("b", [2.0**-20])]
    nodes = [helper.make_node("Gemm", ["x", "w", "b"], ["y"])]
    assert answer_in_tf32(nodes, weights, tmp_path, [[1.0, 2.0**-15]]).tolist() == [[1 + 2.0**-15 + 2.0**-20]]


def test_what_is_no_product_is_not_rounded(tmp_path):
    weight = stored("w", [[1.0, 1.0]])
    nodes = [
        helper.make_node("Mul", ["x", "w"], ["same"]),
        helper.make_node("ReduceSum", ["same"], ["sum"], keepdims=0),
        helper.make_node("Reshape", ["sum", "shape"], ["y"]),
    ]
    shape = numpy_helper.from_array(np.array([1, 1], np.int64), "shape")
    assert answer_in_tf32(nodes, [weight, shape], tmp_path, [[1 + 2.0**-15, 0]]).tolist() == [[1 + 2.0**-15]]


def test_numbers_that_nodes_compute_are_rounded_like_stored_ones(tmp_path):
    numbers = np.random.default_rng(3).standard_normal((500, 2)).astype(np.float32) * 1000
    nodes = [helper.make_node("Neg", ["x"], ["n"]), helper.make_node("MatMul", ["n", "w"], ["y"])]
    given = answer_in_tf32(nodes, [stored("w", [[1.0], [0.0]])], tmp_path, numbers)
    assert given[:, 0].tolist() == emulation.nearest_tf32(-numbers[:, 0]).tolist()


def test_a_number_near_the_end_of_fp32_stays_finite(tmp_path):
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    weight = stored("w", [[1.0], [0.0]])
    assert answer_in_tf32(nodes, [weight], tmp_path, [[3e38, 0.0]]).tolist() == [[np.float32(3e38)]]


def test_a_weight_of_two_products_is_stored_once(tmp_path):
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("MatMul", ["a", "w"], ["b"]),
        helper.make_node("MatMul", ["b", "v"], ["y"]),
    ]  # fmt: skip
    weights = [stored("w", np.eye(2)), stored("v", [[1.0], [1.0]])]
    model = graphs.graph(nodes, [TF32_X], [TF32_Y], weights, opset=20)
    graphs.changed(model, emulation.emulate_tf32)
    names = sorted(tensor.name for tensor in model.graph.initializer if "factor" not in tensor.name)
    assert [name for name in names if "limit" not in name] == ["v_tf32", "w_tf32"]
