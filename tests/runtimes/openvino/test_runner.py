"""Models run by OpenVINO: outputs equal to ONNX Runtime's, and answers that stay as they are."""

from types import SimpleNamespace

import graphs
import numpy as np
import openvino_here  # noqa: F401 - skips where OpenVINO is missing
import pytest

from engine.runtimes import registry
from engine.runtimes.execution import Execution
from engine.runtimes.onnxruntime import session as ort

X = np.random.default_rng(0).standard_normal((3, 8)).astype(np.float32)


@pytest.fixture
def layers(tmp_path):
    """Two linear layers of 8 x 16 and 16 x 4, as an ONNX file."""
    return graphs.write(tmp_path / "layers", graphs.layers(8, 16))


@pytest.fixture
def opened(layers):
    """The runner of the two layers in fp32, as a rival."""
    original = SimpleNamespace(exported=layers, new_tokens=None)
    return registry.find("openvino").rival(
        original, name="openvino", precision="fp32", execution=Execution(), threads=1
    )


def test_outputs_are_those_of_onnx_runtime(opened, layers):
    expected = ort.run(ort.session(layers, threads=1), {"x": X})
    answers = opened.run({"x": X})
    assert answers.keys() == expected.keys()
    assert np.abs(answers["y"] - expected["y"]).max() < 1e-5
    opened.prepare({"x": X})()


def test_a_later_call_changes_no_earlier_answer(opened):
    first = opened.run({"x": X})["y"]
    kept = first.copy()
    opened.run({"x": -X})
    assert np.array_equal(first, kept)
