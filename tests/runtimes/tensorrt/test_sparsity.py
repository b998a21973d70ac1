"""Weights with the pattern 2:4 are counted along the axis that the product sums over."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from engine.report import plans
from engine.runtimes.tensorrt import sparsity
from engine.runtimes.tensorrt.report import EngineReport

DENSE = np.arange(1, 65, dtype=np.float32).reshape(8, 8)
SPARSE = DENSE * np.array([1, 0, 0, 1] * 2, np.float32)[:, None]
"""Two of four neighbours are zero along the first axis; along the second one whole rows are."""


@pytest.mark.parametrize(
    ("weights", "axis", "expected"),
    [
        (SPARSE, -2, True),
        (SPARSE, -1, False),
        (SPARSE.T, -1, True),
        (DENSE, -2, False),
        (SPARSE[:6], -2, False),
        (np.zeros((8, 8)), -2, True),
        (SPARSE.reshape(8, 8, 1, 1).transpose(1, 0, 2, 3), 1, True),
    ],
)
def test_the_pattern_is_looked_for_along_one_axis(weights, axis, expected):
    assert sparsity.has_pattern(weights, axis) == expected


def saved(folder, weights, *, transposed=False, quantized=False):
    name = "w"
    stored = [numpy_helper.from_array(weights.astype(np.int8) if quantized else weights, "w")]
    nodes = []
    if quantized:
        stored.append(numpy_helper.from_array(np.float32(0.1), "scale"))
        nodes.append(helper.make_node("DequantizeLinear", ["w", "scale"], ["real"]))
        name = "real"
    nodes += [
        helper.make_node("Gemm", ["x", name], ["h"], transB=int(transposed)),
        helper.make_node("MatMul", ["h", "x"], ["y"]),
    ]
    x, y = (helper.make_tensor_value_info(each, TensorProto.FLOAT, [8, 8]) for each in "xy")
    model = helper.make_model(helper.make_graph(nodes, "g", [x], [y], stored), ir_version=10)
    onnx.save(model, folder / "model.onnx")
    return folder


def test_products_of_two_computed_tensors_have_no_weights(tmp_path):
    assert sparsity.counted(saved(tmp_path, SPARSE)) == (1, 1)


def test_transposed_and_quantized_weights_are_counted(tmp_path):
    assert sparsity.counted(saved(tmp_path, SPARSE.T.copy(), transposed=True)) == (1, 1)
    assert sparsity.counted(saved(tmp_path, SPARSE, transposed=True)) == (0, 1)
    assert sparsity.counted(saved(tmp_path, SPARSE, quantized=True)) == (1, 1)
    assert sparsity.counted(saved(tmp_path, DENSE, quantized=True)) == (0, 1)


def test_the_build_says_that_the_option_has_no_effect_on_dense_weights():
    report = EngineReport(bytes=1, tensorrt="10.11", gpu=("T4",), profiles=1, network={}, engine=None, sparse=(0, 3))
    assert plans.lines(report) == ["0 of 3 weights have the pattern 2:4, so `sparse_weights` has no effect"]
