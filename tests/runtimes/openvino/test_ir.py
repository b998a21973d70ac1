"""OpenVINO's files: the same bytes for the same model, with the names of axes."""

import graphs
import models
import openvino_here  # noqa: F401 - skips where OpenVINO is missing
import pytest

from engine.errors import StepError
from engine.kit.onnx import onnx_files
from engine.kit.onnx.onnx_files import Input
from engine.runtimes.openvino import ir


def saved(graph, out):
    """The IR of a graph, in a folder."""
    out.mkdir()
    model = onnx_files.load_graph(graph)
    axes = {**onnx_files.inputs(model), **onnx_files.outputs(model)}
    ir.save(ir.read(graph / onnx_files.MODEL), out, axes)
    return out


def test_the_same_model_twice_gives_the_same_bytes(tmp_path):
    graph = graphs.write(tmp_path / "graph", graphs.layers())
    one, two = saved(graph, tmp_path / "one"), saved(graph, tmp_path / "two")
    for name in ir.FILES:
        assert (one / name).read_bytes() == (two / name).read_bytes()


def test_axes_keep_their_names_and_those_without_names_are_counted(tmp_path):
    graph = graphs.write(tmp_path / "graph", graphs.layers(8, 16))
    model = ir.read(saved(graph, tmp_path / "out") / ir.MODEL)
    assert ir.described(model, model.inputs) == {"x": Input("x", "float32", ("batch", 8))}
    assert ir.described(model, model.outputs) == {"y": Input("y", "float32", ("batch", 4))}
    unnamed = ir.read(graph / onnx_files.MODEL)
    assert ir.described(unnamed, unnamed.inputs) == {"x": Input("x", "float32", ("x_0", 8))}


def test_a_file_that_openvino_cannot_read_is_refused(tmp_path):
    (tmp_path / "model.onnx").write_bytes(b"no model")
    with pytest.raises(StepError, match=r"OpenVINO cannot read model\.onnx"):
        ir.read(tmp_path / "model.onnx")


def known(folder, rows, tokens):
    model = ir.read(folder / onnx_files.MODEL)
    return ir.output_axes(model, onnx_files.inputs(onnx_files.load_graph(folder)), rows, tokens)


def test_rows_are_known_from_two_sizes_of_the_batch_and_not_with_another_free_axis():
    assert known(graphs.tiny("bert"), "batch", "sequence") == {"logits": ["batch", None]}
    assert known(graphs.tiny("bert"), "batch", None) is None
    assert known(graphs.tiny("bert"), None, None) is None


def test_an_axis_that_follows_from_the_input_in_another_way_is_not_known(tmp_path):
    models.onnx_audio(tmp_path / "model.onnx")
    assert known(tmp_path, "batch", None) is None
    assert known(tmp_path, "batch", "samples") is None
