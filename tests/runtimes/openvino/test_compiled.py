"""Calls of compiled models: their inputs are refused where they do not suit the model."""

import graphs
import numpy as np
import openvino_here  # noqa: F401 - skips where OpenVINO is missing
import pytest

from engine.errors import StepError
from engine.kit.onnx import onnx_files
from engine.runtimes.openvino import ir
from engine.runtimes.openvino.compiled import Calls

X = np.ones((3, 8), np.float32)


@pytest.fixture
def calls(tmp_path):
    """Calls of two linear layers of 8 x 16 and 16 x 4."""
    graph = graphs.write(tmp_path / "layers", graphs.layers(8, 16))
    return Calls(ir.of_onnx(graph / onnx_files.MODEL), threads=1)


def test_inputs_get_the_type_of_the_model(calls):
    assert calls.run({"x": X.astype(np.float64)})["y"].shape == (3, 4)
    assert calls.run({"x": X, "other": X})["y"].dtype == np.float32


def test_a_missing_input_is_named(calls):
    with pytest.raises(StepError, match="asks for inputs that are not there: x"):
        calls.run({})


def test_prepared_calls_keep_their_own_inputs_whatever_runs_between_them(calls):
    inputs = [{"x": X * factor} for factor in (1, -2)]
    expected = [calls.run(each)["y"] for each in inputs]
    prepared = [calls.prepare(each) for each in inputs]
    calls.run({"x": X * 3})
    for _ in range(2):
        for call, answer in zip(prepared, expected, strict=True):
            np.testing.assert_array_equal(call()[0], answer)


@pytest.mark.parametrize("wrong", [X[:, :5], X[0]], ids=["another size", "an axis less"])
def test_a_wrong_shape_is_refused(calls, wrong):
    with pytest.raises(StepError, match="cannot run the model on these inputs") as error:
        calls.run({"x": wrong})
    assert error.value.facts[0].startswith("x has the shape [?,8]")
    assert error.value.facts[-1] == f"x: float32{list(wrong.shape)}"
