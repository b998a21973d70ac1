"""Layers in 8 bits: which there are, and the answers of a copy without some of them."""

import graphs
import numpy as np
import openvino_here  # noqa: F401 - skips where OpenVINO is missing
import pytest

from engine.kit.onnx import onnx_files
from engine.runtimes.openvino import compiled, ir, quantized_layers, quantizer
from engine.runtimes.openvino.compiled import Calls

SAMPLES = [{"x": np.random.default_rng(seed).standard_normal((3, 64)).astype(np.float32)} for seed in range(8)]


@pytest.fixture
def models(tmp_path):
    """Two linear layers, in floating point and in int8."""
    plain = ir.of_onnx(graphs.write(tmp_path / "layers", graphs.layers(64, 128)) / onnx_files.MODEL)
    return plain, quantizer.quantized(plain.clone(), SAMPLES)


def error(model, plain):
    """The mean error over all samples, where floating-point operators compute in fp32."""
    first, second = (Calls(each, threads=1, options=compiled.FP32) for each in (plain, model))
    return np.mean([np.abs(second.run(each)["y"] - first.run(each)["y"]).mean() for each in SAMPLES])


def test_a_layer_that_is_left_out_reads_its_activation_as_it_is(models):
    plain, small = models
    first, second = quantized_layers.find(small)
    assert quantized_layers.find(quantized_layers.without(small, {first})) == {second: "MatMul"}
    alone = quantized_layers.without(small, {first, second})
    assert quantized_layers.find(alone) == {}
    assert quantized_layers.find(small).keys() == {first, second}, "the model itself stays as it is"
    assert 0 < error(alone, plain) < error(small, plain)


def test_a_layer_that_shares_its_activation_is_left_out_alone(tmp_path):
    """Two products read one rounded tensor; the other one keeps reading it."""
    from onnx import helper

    nodes = [helper.make_node("MatMul", ["x", f"w{i}"], [f"y{i}"]) for i in (0, 1)]
    weights = [graphs.weight(f"w{i}", 64, 16, seed=i) for i in (0, 1)]
    outputs = [(f"y{i}", graphs.FLOAT, ["batch", 16]) for i in (0, 1)]
    model = graphs.graph(nodes, [("x", graphs.FLOAT, ["batch", 64])], outputs, weights)
    plain = ir.of_onnx(graphs.write(tmp_path / "two", model) / onnx_files.MODEL)
    small = quantizer.quantized(plain.clone(), SAMPLES)
    first, second = quantized_layers.find(small)
    assert list(quantized_layers.find(quantized_layers.without(small, {second}))) == [first]
