"""Calls of compiled models: their inputs are refused where they do not suit the model."""

import graphs
import numpy as np
import openvino_here  # noqa: F401 - skips where OpenVINO is missing
import pytest

from engine.errors import StepError
from engine.kit.onnx import onnx_files
from engine.runtimes.openvino import compiled, ir

X = np.ones((3, 8), np.float32)


@pytest.fixture
def request_(tmp_path):
    """Calls of two linear layers of 8 x 16 and 16 x 4."""
    graph = graphs.write(tmp_path / "layers", graphs.layers(8, 16))
    return compiled.compiled(ir.read(graph / onnx_files.MODEL), threads=1).create_infer_request()


def test_inputs_get_the_type_of_the_model(request_):
    assert compiled.run(request_, {"x": X.astype(np.float64)})["y"].shape == (3, 4)
    assert compiled.feed(request_.get_compiled_model(), {"x": X, "other": X})["x"].dtype == np.float32


def test_a_missing_input_is_named(request_):
    with pytest.raises(StepError, match="asks for inputs that are not there: x"):
        compiled.run(request_, {})


@pytest.mark.parametrize("wrong", [X[:, :5], X[0]], ids=["another size", "an axis less"])
def test_a_wrong_shape_is_refused(request_, wrong):
    with pytest.raises(StepError, match="cannot run the model on these inputs") as error:
        compiled.run(request_, {"x": wrong})
    assert error.value.facts[0].startswith("x has the shape [?,8]")
    assert error.value.facts[-1] == f"x: float32{list(wrong.shape)}"
