"""The axes of a model's outputs, from OpenVINO's own shapes."""

import graphs
import models
import openvino_here  # noqa: F401 - skips where OpenVINO is missing
import pytest

from engine.kit.onnx import onnx_files
from engine.runtimes.openvino import ir, output_axes


def known(folder, rows, tokens):
    model = ir.read(folder / onnx_files.MODEL)
    return output_axes.of_model(model, onnx_files.inputs(onnx_files.load_graph(folder)), rows, tokens)


def test_rows_are_known_from_two_sizes_of_the_batch():
    assert known(graphs.tiny("bert"), "batch", "sequence") == {"logits": ["batch", None]}


@pytest.mark.parametrize(("rows", "tokens"), [("batch", None), (None, None)])
def test_an_input_with_another_free_axis_tells_nothing(rows, tokens):
    assert known(graphs.tiny("bert"), rows, tokens) is None


def test_an_axis_that_follows_from_the_input_in_another_way_is_not_known(tmp_path):
    models.onnx_audio(tmp_path / "model.onnx")
    assert known(tmp_path, "batch", None) is None
    assert known(tmp_path, "batch", "samples") is None
