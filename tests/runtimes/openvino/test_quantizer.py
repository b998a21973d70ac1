"""int8 by NNCF: what is quantized, near the original, without a word on the way."""

import os

import graphs
import numpy as np
import openvino_here  # noqa: F401 - skips where OpenVINO is missing
import pytest

from engine.errors import StepError
from engine.kit.onnx import onnx_files
from engine.runtimes.openvino import ir, quantized_layers, quantizer
from engine.runtimes.openvino.compiled import Calls

SAMPLES = [{"x": np.random.default_rng(seed).standard_normal((3, 64)).astype(np.float32)} for seed in range(8)]


@pytest.fixture
def layers(tmp_path):
    """Two linear layers of 64 x 128 and 128 x 4."""
    return ir.read(graphs.write(tmp_path / "layers", graphs.layers(64, 128)) / onnx_files.MODEL)


def answer(model, inputs):
    return Calls(model, threads=1).run(inputs)["y"]


def test_products_are_quantized_and_stay_near(layers, capsys):
    before = dict(os.environ)
    small = quantizer.quantized(layers.clone(), SAMPLES)
    assert quantized_layers.find(layers) == {}
    assert quantized_layers.counted(small, ()) == {"MatMul": 2}
    one, other = answer(layers, SAMPLES[0]), answer(small, SAMPLES[0])
    assert np.abs(one - other).max() < 0.05 * np.abs(one).max()
    assert not np.array_equal(one, other)
    assert capsys.readouterr().out == ""
    assert dict(os.environ) == before


def test_what_nncf_refuses_is_explained(layers):
    with pytest.raises(StepError, match="NNCF cannot quantize this model") as error:
        quantizer.quantized(layers, [{"y": SAMPLES[0]["x"]}])
    assert "onnxruntime" in error.value.hint
