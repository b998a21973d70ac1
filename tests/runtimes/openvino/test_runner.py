"""Models run by OpenVINO: outputs equal to ONNX Runtime's, clear errors, and the work in each precision."""

from types import SimpleNamespace

import graphs
import numpy as np
import openvino_here  # noqa: F401 - skips where OpenVINO is missing
import pytest
from onnx import helper

from engine.errors import StepError
from engine.kit.onnx import onnx_files
from engine.runtimes import registry
from engine.runtimes.execution import Execution
from engine.runtimes.onnxruntime import session as ort
from engine.runtimes.openvino import ir, work

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


def test_wrong_inputs_are_explained(opened):
    with pytest.raises(StepError, match="asks for inputs that are not there: x"):
        opened.run({})
    with pytest.raises(StepError, match="cannot run the model on these inputs") as error:
        opened.run({"x": X[:, :5]})
    assert "x: float32[3, 5]" in error.value.facts


def test_the_work_of_matrix_products_and_convolutions_is_counted(layers, tmp_path):
    assert sum(work.multiplications(ir.read(layers / onnx_files.MODEL), {"x": X}).values()) == 3 * (8 * 16 + 16 * 4)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"]),
        helper.make_node("Conv", ["a", "g"], ["b"], group=4),
        helper.make_node("ConvTranspose", ["b", "t"], ["y"]),
    ]
    weights = [graphs.weight("w", 4, 3, 3, 3), graphs.weight("g", 4, 1, 2, 2), graphs.weight("t", 4, 5, 2, 2)]
    inputs, outputs = [("x", graphs.FLOAT, [1, 3, 8, 8])], [("y", graphs.FLOAT, [1, 5, 6, 6])]
    graph = graphs.write(tmp_path / "convolutions", graphs.graph(nodes, inputs, outputs, weights))
    model = ir.read(graph / onnx_files.MODEL)
    counts = work.multiplications(model, {"x": np.zeros((1, 3, 8, 8), np.float32)})
    assert sum(counts.values()) == 4 * 36 * 27 + 4 * 25 * 4 + 4 * 25 * 5 * 4
