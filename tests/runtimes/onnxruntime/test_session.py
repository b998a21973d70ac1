"""Sessions of ONNX Runtime: threads, levels, inputs, session.json, and errors that name what is wrong."""

import json
from pathlib import Path

import graphs
import numpy as np
import onnxruntime
import pytest
from graphs import FLOAT
from onnx import TensorProto, helper

from engine.errors import StepError
from engine.kit.onnx import onnx_files
from engine.runtimes.onnxruntime import session as ort
from engine.runtimes.onnxruntime import session_options
from engine.runtimes.onnxruntime.session_options import SavedOptions


@pytest.fixture
def layers(tmp_path):
    onnx_files.save(graphs.layers(), tmp_path)
    return tmp_path


def test_a_model_runs_and_answers_by_name(layers):
    x = np.ones((2, 64), np.float32)
    answer = ort.run(ort.session(layers, threads=1), {"x": x, "unused": x})
    assert list(answer) == ["y"]
    assert answer["y"].shape == (2, 4)


def test_session_json_chooses_the_level_unless_the_caller_does(layers):
    levels = onnxruntime.GraphOptimizationLevel
    assert ort.session(layers).get_session_options().graph_optimization_level == levels.ORT_ENABLE_ALL
    session_options.save(layers, level="basic", disabled=("SkipLayerNormFusion",))
    assert ort.session(layers).get_session_options().graph_optimization_level == levels.ORT_ENABLE_BASIC
    asked = ort.session(layers, threads=1, level="extended").get_session_options()
    assert (asked.graph_optimization_level, asked.intra_op_num_threads) == (levels.ORT_ENABLE_EXTENDED, 1)


def test_fp8_on_a_cpu_is_run_without_the_optimization_that_spoils_it(tmp_path):
    source = Path(graphs.__file__).parent / "modelopt" / "fp8_fp32.onnx"
    (tmp_path / "model.onnx").write_bytes(source.read_bytes())
    assert [ort.level_of(tmp_path, on_gpu=on_gpu) for on_gpu in (True, False)] == ["all", "basic"]
    x = {"x": np.random.default_rng(0).normal(size=(1, 16, 32)).astype(np.float32)}
    [answer] = ort.run(ort.session(tmp_path), x).values()
    assert np.isfinite(answer).all()
    try:
        [spoilt] = ort.run(ort.session(tmp_path, level="all"), x).values()
    except StepError:
        return
    # An ONNX Runtime that answers the same needs no lower level.
    assert np.abs(spoilt - answer).max() > 0.1 * np.abs(answer).max()


def test_a_disabled_optimizer_does_not_run(tmp_path):
    nodes = [
        helper.make_node("Add", ["x", "x"], ["a"]),
        helper.make_node("LayerNormalization", ["a", "scale"], ["y"]),
    ]
    model = graphs.graph(nodes, [("x", FLOAT, [2, 3, 8])], [("y", FLOAT, [2, 3, 8])], [graphs.weight("scale", 8)])
    onnx_files.save(model, tmp_path / "model")
    operators = {}
    for name, disabled in (("all", ()), ("some", ("SkipLayerNormFusion",))):
        ort.optimize(tmp_path / "model", tmp_path / name, level="extended", disabled=disabled)
        operators[name] = {node.op_type for node in onnx_files.load(tmp_path / name).graph.node}
    assert operators == {"all": {"SkipLayerNormalization"}, "some": {"Add", "LayerNormalization"}}


def test_optimizing_leaves_the_source_alone_and_keeps_external_data_external(tmp_path):
    onnx_files.save(graphs.layers(), tmp_path / "in", threshold=1000)
    before = {path.name: path.read_bytes() for path in (tmp_path / "in").iterdir()}
    ort.optimize(tmp_path / "in", tmp_path / "out", level="basic")
    assert {path.name: path.read_bytes() for path in (tmp_path / "in").iterdir()} == before
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["model.onnx", "model.onnx.data"]
    x = {"x": np.ones((2, 64), np.float32)}
    was, now = (ort.run(ort.session(tmp_path / name), x)["y"] for name in ("in", "out"))
    assert np.allclose(was, now, rtol=1e-5)


def test_a_model_that_onnx_runtime_refuses_is_told_without_the_stores_paths(tmp_path):
    model = graphs.graph([helper.make_node("NoSuchOperator", ["x"], ["y"])], [("x", FLOAT, [1])], [("y", FLOAT, [1])])
    onnx_files.save(model, tmp_path)
    with pytest.raises(StepError, match="ONNX Runtime cannot open the model") as caught:
        ort.session(tmp_path)
    assert "NoSuchOperator" in str(caught.value)
    assert str(tmp_path) not in str(caught.value)


def test_a_missing_input_is_told_by_name(layers):
    with pytest.raises(StepError) as caught:
        ort.run(ort.session(layers), {"z": np.ones(1)})
    assert str(caught.value) == "The model asks for inputs that are not there: x\n  there are: z"


def test_a_wrong_shape_is_told_with_the_shapes_that_were_fed(layers):
    with pytest.raises(StepError, match="cannot run the model on these inputs") as caught:
        ort.run(ort.session(layers), {"x": np.ones((2, 3), np.float32)})
    assert "x: float32[2, 3]" in str(caught.value)


def test_integers_and_floats_are_cast_to_their_width_and_a_float_is_no_index(tmp_path):
    nodes = [helper.make_node("Gather", ["table", "ids"], ["a"]), helper.make_node("Mul", ["a", "scale"], ["y"])]
    inputs = [("ids", TensorProto.INT32, ["n"]), ("scale", FLOAT, [1])]
    onnx_files.save(graphs.graph(nodes, inputs, [("y", FLOAT, None)], [graphs.weight("table", 5, 2)]), tmp_path)
    fed = {"ids": np.array([1, 4]), "scale": np.array([1.0])}
    assert ort.run(ort.session(tmp_path), fed)["y"].shape == (2, 2)
    with pytest.raises(StepError, match="cannot run the model"):
        ort.run(ort.session(tmp_path), fed | {"ids": np.array([1.5])})


def test_options_are_read_as_they_were_saved(tmp_path):
    assert session_options.read(tmp_path) == SavedOptions()
    session_options.save(tmp_path, level="basic", disabled=("SkipLayerNormFusion",))
    options = {"disabled_optimizers": ["SkipLayerNormFusion"], "graph_optimization_level": "basic"}
    assert json.loads((tmp_path / "session.json").read_text()) == options
    assert session_options.read(tmp_path) == SavedOptions("basic", ("SkipLayerNormFusion",))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "session.json is no JSON"),
        ("[]", "session.json asks for something unknown"),
        ('{"graph_optimization_level": "fast"}', "levels are disabled, basic, extended, all"),
        ('{"threads": 3}', "it may say disabled_optimizers and graph_optimization_level"),
    ],
)
def test_a_wrong_session_json_is_explained(tmp_path, text, complaint):
    (tmp_path / "session.json").write_text(text)
    with pytest.raises(StepError) as caught:
        session_options.read(tmp_path)
    assert complaint in str(caught.value)
