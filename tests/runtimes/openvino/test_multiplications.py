"""The multiplications of OpenVINO's kernels."""

import graphs
import numpy as np
import openvino_here  # noqa: F401 - skips where OpenVINO is missing
from onnx import helper

from engine.kit.onnx import onnx_files
from engine.runtimes.openvino import ir, multiplications, quantizer

X = np.ones((3, 64), np.float32)


def layers(tmp_path):
    """Two linear layers of 64 x 128 and 128 x 4."""
    return ir.read(graphs.write(tmp_path / "layers", graphs.layers(64, 128)) / onnx_files.MODEL)


def test_the_work_of_matrix_products_and_convolutions_is_counted(tmp_path):
    assert sum(multiplications.multiplications(layers(tmp_path), {"x": X}).values()) == 3 * (64 * 128 + 128 * 4)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"]),
        helper.make_node("Conv", ["a", "g"], ["b"], group=4),
        helper.make_node("ConvTranspose", ["b", "t"], ["y"]),
    ]
    weights = [graphs.weight("w", 4, 3, 3, 3), graphs.weight("g", 4, 1, 2, 2), graphs.weight("t", 4, 5, 2, 2)]
    inputs, outputs = [("x", graphs.FLOAT, [1, 3, 8, 8])], [("y", graphs.FLOAT, [1, 5, 6, 6])]
    graph = graphs.write(tmp_path / "convolutions", graphs.graph(nodes, inputs, outputs, weights))
    model = ir.read(graph / onnx_files.MODEL)
    counts = multiplications.multiplications(model, {"x": np.zeros((1, 3, 8, 8), np.float32)})
    assert sum(counts.values()) == 4 * 36 * 27 + 4 * 25 * 4 + 4 * 25 * 5 * 4


def test_quantized_products_count_as_int8(tmp_path):
    samples = [{"x": np.random.default_rng(seed).standard_normal((3, 64)).astype(np.float32)} for seed in range(4)]
    assert "int8" not in multiplications.multiplications(layers(tmp_path), {"x": X})
    small = quantizer.quantized(layers(tmp_path), samples)
    assert multiplications.multiplications(small, {"x": X}) == {"int8": 3 * (64 * 128 + 128 * 4)}


def test_products_with_weights_in_int8_alone_name_both_precisions(tmp_path):
    small, counts = quantizer.with_weights(layers(tmp_path))
    assert counts == {"MatMul": 2}
    [(name, count)] = multiplications.multiplications(small, {"x": X}).items()
    assert name.endswith(" with int8 weights")
    assert count == 3 * (64 * 128 + 128 * 4)


def test_products_of_constants_are_computed_once_and_do_not_count(tmp_path):
    nodes = [helper.make_node("MatMul", ["t", "w"], ["k"]), helper.make_node("MatMul", ["x", "k"], ["y"])]
    weights = [graphs.weight("t", 64, 32), graphs.weight("w", 32, 16)]
    inputs, outputs = [("x", graphs.FLOAT, [3, 64])], [("y", graphs.FLOAT, [3, 16])]
    graph = graphs.write(tmp_path / "positions", graphs.graph(nodes, inputs, outputs, weights))
    model = ir.read(graph / onnx_files.MODEL)
    assert sum(multiplications.multiplications(model, {"x": X}).values()) == 3 * 64 * 16
    assert list(multiplications.by_operator(model, {"x": X}).values()) == [3 * 64 * 16]
