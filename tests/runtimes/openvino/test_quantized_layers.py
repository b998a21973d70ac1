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


def test_an_activation_that_is_left_out_is_as_it_is(models):
    plain, small = models
    first, second = quantized_layers.find(small)
    assert list(quantized_layers.find(quantized_layers.without(small, {first}))) == [second]
    alone = quantized_layers.without(small, {first, second})
    assert quantized_layers.find(alone) == {}
    assert quantized_layers.find(small).keys() == {first, second}, "the model itself stays as it is"
    assert 0 < error(alone, plain) < error(small, plain)


def test_layers_are_counted_where_all_of_their_activations_are_rounded(models):
    _, small = models
    first, second = quantized_layers.find(small)
    assert quantized_layers.counted(small, ()) == {"MatMul": 2}
    assert quantized_layers.counted(small, {first}) == {"MatMul": 1}
    assert quantized_layers.counted(small, {first, second}) == {}


def test_switches_round_as_the_copies_do(models):
    _, small = models
    first, second = quantized_layers.find(small)
    switched = quantized_layers.Switched(small)
    for chosen in ({first, second}, {first}, set()):
        copy = quantized_layers.without(small, {first, second} - chosen)
        expected = Calls(copy, threads=1, options=compiled.FP32).run(SAMPLES[0])["y"]
        answer = switched.run(SAMPLES[0], chosen)["y"]
        assert np.abs(answer - expected).max() < 0.03 * np.abs(expected).max()
