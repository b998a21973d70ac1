"""TF32 on the CPU: what a product reads has 10 bits of mantissa, and everything else stays in fp32."""

import graphs
import numpy as np
import pytest
from onnx import helper, numpy_helper

from engine.kit.onnx import onnx_files
from engine.kit.quantization.half import tf32_emulation
from engine.runtimes.onnxruntime import session as ort

STEP = 2.0**-10
"""The distance of neighbours in TF32, from 1 to 2."""
X = ("x", graphs.FLOAT, ["rows", 2])
Y = ("y", graphs.FLOAT, ["rows", 1])


def answer(nodes, weights, tmp_path, x, inputs=(X,)):
    model = graphs.graph(nodes, list(inputs), [Y], weights, opset=20)
    graphs.changed(model, tf32_emulation.emulate)
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
    assert tf32_emulation.nearest(np.array(number, np.float32)) == np.float32(rounded)


def test_a_product_by_hand(tmp_path):
    """(1 + 2^-11 + 2^-12) * 1 becomes 1 + 2^-10, and 3 * (1 + 2^-12) becomes 3: both inputs are rounded."""
    weight = stored("w", [[1.0], [1 + 2.0**-12]])
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    x = [[1 + 2.0**-11 + 2.0**-12, 0.0], [0.0, 3.0]]
    assert answer(nodes, [weight], tmp_path, x).tolist() == [[1 + STEP], [3.0]]


def test_the_sum_and_the_bias_stay_in_fp32(tmp_path):
    weights = [stored("w", [[1.0], [1.0]]), stored("b", [2.0**-20])]
    nodes = [helper.make_node("Gemm", ["x", "w", "b"], ["y"])]
    assert answer(nodes, weights, tmp_path, [[1.0, 2.0**-15]]).tolist() == [[1 + 2.0**-15 + 2.0**-20]]


def test_what_is_no_product_is_not_rounded(tmp_path):
    weight = stored("w", [[1.0, 1.0]])
    nodes = [
        helper.make_node("Mul", ["x", "w"], ["same"]),
        helper.make_node("ReduceSum", ["same"], ["sum"], keepdims=0),
        helper.make_node("Reshape", ["sum", "shape"], ["y"]),
    ]
    shape = numpy_helper.from_array(np.array([1, 1], np.int64), "shape")
    assert answer(nodes, [weight, shape], tmp_path, [[1 + 2.0**-15, 0]]).tolist() == [[1 + 2.0**-15]]


def test_numbers_that_nodes_compute_are_rounded_like_stored_ones(tmp_path):
    numbers = np.random.default_rng(3).standard_normal((500, 2)).astype(np.float32) * 1000
    nodes = [helper.make_node("Neg", ["x"], ["n"]), helper.make_node("MatMul", ["n", "w"], ["y"])]
    given = answer(nodes, [stored("w", [[1.0], [0.0]])], tmp_path, numbers)
    assert given[:, 0].tolist() == tf32_emulation.nearest(-numbers[:, 0]).tolist()


def test_a_number_near_the_end_of_fp32_stays_finite(tmp_path):
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    weight = stored("w", [[1.0], [0.0]])
    assert answer(nodes, [weight], tmp_path, [[3e38, 0.0]]).tolist() == [[np.float32(3e38)]]


def test_a_weight_of_two_products_is_stored_once(tmp_path):
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("MatMul", ["a", "w"], ["b"]),
        helper.make_node("MatMul", ["b", "v"], ["y"]),
    ]  # fmt: skip
    weights = [stored("w", np.eye(2)), stored("v", [[1.0], [1.0]])]
    model = graphs.graph(nodes, [X], [Y], weights, opset=20)
    graphs.changed(model, tf32_emulation.emulate)
    names = sorted(tensor.name for tensor in model.graph.initializer if "factor" not in tensor.name)
    assert [name for name in names if "limit" not in name] == ["v_tf32", "w_tf32"]
