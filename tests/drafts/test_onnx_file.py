"""The draft of an ONNX file, by the inputs of its graph and by sizes with which it runs."""

import functools

import graphs
import numpy as np
import pytest
from graphs import FLOAT, INT64, weight
from onnx import TensorProto, helper, numpy_helper, save

from engine.drafts import onnx_file
from engine.drafts.draft import Draft
from engine.errors import StepError
from engine.recipe.values import Range
from tests.support import models


def test_axes_of_any_size_get_a_profile(tmp_path):
    draft = Draft({"name": "it"})
    onnx_file.add(draft, models.onnx_audio(tmp_path / "a.onnx"), task=None, on="cpu")
    assert "batch" in draft.fields["profiles"][0]
    assert "task" not in draft.fields.get("model", {})
    assert draft.samples is not None
    assert any("does not say what it is for" in each for each in draft.about)


_ANY = Range(min=1, opt=16, max=64)


def _saved(path, nodes, inputs, outputs, stored=()):
    save(graphs.graph(nodes, inputs, outputs, list(stored)), str(path))
    return path


def _node(operator, inputs, output, **attributes):
    return helper.make_node(operator, inputs, [output], **attributes)


def _numbers(name, values):
    return numpy_helper.from_array(np.array(values, np.int64), name)


def test_a_guess_that_runs_is_kept(tmp_path):
    nodes, outputs = [_node("Relu", ["x"], "y")], [("y", FLOAT, ["n", "any"])]
    path = _saved(tmp_path / "m.onnx", nodes, [("x", FLOAT, ["n", "any"])], outputs)
    guess = {"n": Range(min=1, opt=1, max=8), "any": _ANY}
    assert onnx_file._tried_sizes(path, guess) == onnx_file.TriedSizes(guess, "the model runs with them")


def test_a_size_of_the_weights_is_found(tmp_path):
    nodes = [_node("MatMul", ["x", "w"], "y")]
    path = _saved(tmp_path / "m.onnx", nodes, [("x", FLOAT, ["n", "features"])], [("y", FLOAT, ["n", 2])],
                  [weight("w", 2311, 2)])  # fmt: skip
    tried = onnx_file._tried_sizes(path, {"n": Range(min=1, opt=1, max=8), "features": _ANY})
    assert tried.profile["features"] == Range(min=2311, opt=2311, max=2311)
    assert tried.comment == "the nearest with which it runs"


def test_a_size_that_an_error_names_is_found(tmp_path):
    nodes = [_node("Expand", ["one", "shape"], "row"), _node("Concat", ["x", "row"], "y", axis=0)]
    stored = [weight("one", 1, 1), _numbers("shape", [1, 2311])]
    path = _saved(tmp_path / "m.onnx", nodes, [("x", FLOAT, ["n", "any"])], [("y", FLOAT, ["m", 2311])], stored)
    assert onnx_file._tried_sizes(path, {"n": Range(min=1, opt=1, max=8), "any": _ANY}).profile["any"].opt == 2311


def test_two_sizes_of_the_weights_are_found(tmp_path):
    nodes = [_node("MatMul", ["x", "w"], "a"), _node("MatMul", ["z", "v"], "b"), _node("Add", ["a", "b"], "y")]
    inputs = [("x", FLOAT, ["n", "left"]), ("z", FLOAT, ["n", "right"])]
    stored = [weight("w", 2311, 2), weight("v", 77, 2)]
    path = _saved(tmp_path / "m.onnx", nodes, inputs, [("y", FLOAT, ["n", 2])], stored)
    tried = onnx_file._tried_sizes(path, {"n": Range(min=1, opt=1, max=8), "left": _ANY, "right": _ANY})
    assert [tried.profile[axis].opt for axis in ("left", "right")] == [2311, 77]


def test_sizes_are_multiples_where_the_model_halves_and_doubles_them(tmp_path):
    nodes = [
        _node("Reshape", ["x", "blocks"], "rows"),  # a length that is no multiple of 96 cannot be reshaped
        _node("ReduceMean", ["rows"], "y", axes=[2], keepdims=0),
    ]
    path = _saved(tmp_path / "m.onnx", nodes, [("x", FLOAT, ["n", "any"])], [("y", FLOAT, ["n", "m"])],
                  [_numbers("blocks", [0, -1, 96])])  # fmt: skip
    tried = onnx_file._tried_sizes(path, {"n": Range(min=1, opt=1, max=8), "any": _ANY})
    assert tried.profile["any"].opt == 96


def test_a_model_that_fails_with_every_size_is_refused_with_the_error_of_the_runtime(tmp_path):
    nodes, stored = [_node("Reshape", ["x", "shape"], "y")], [_numbers("shape", [7, 11, 13, 17, 19])]
    path = _saved(tmp_path / "m.onnx", nodes, [("x", FLOAT, [1, 4])], [("y", FLOAT, [7, 11, 13, 17, 19])], stored)
    with pytest.raises(StepError, match="fails on random inputs") as refused:
        onnx_file._tried_sizes(path, {})
    assert any("Reshape" in fact for fact in refused.value.facts)
    assert "validate: {samples: samples.npz}" in refused.value.hint


def test_a_model_that_draws_random_numbers_is_refused(tmp_path):
    nodes = [_node("RandomNormalLike", ["x"], "noise"), _node("Add", ["x", "noise"], "y")]
    path = _saved(tmp_path / "m.onnx", nodes, [("x", FLOAT, [1, 4])], [("y", FLOAT, [1, 4])])
    with pytest.raises(StepError, match="draws random numbers"):
        onnx_file._tried_sizes(path, {})


def test_a_model_that_gives_no_number_is_refused(tmp_path):
    nodes = [_node("Neg", ["x"], "less"), _node("Mul", ["x", "less"], "square"), _node("Sqrt", ["square"], "y")]
    path = _saved(tmp_path / "m.onnx", nodes, [("x", FLOAT, [1, 4])], [("y", FLOAT, [1, 4])])
    with pytest.raises(StepError, match="no finite number"):
        onnx_file._tried_sizes(path, {})


def test_a_model_that_never_ends_does_not_hang_the_command(tmp_path, monkeypatch):
    body = helper.make_graph(
        [_node("Identity", ["on"], "on_out"), _node("Identity", ["v"], "v_out")],
        "body",
        [helper.make_tensor_value_info(name, kind, shape)
         for name, kind, shape in (("i", INT64, []), ("on", TensorProto.BOOL, []), ("v", FLOAT, [1, 4]))],
        [helper.make_tensor_value_info(name, kind, shape)
         for name, kind, shape in (("on_out", TensorProto.BOOL, []), ("v_out", FLOAT, [1, 4]))],
    )  # fmt: skip
    stored = [_numbers("count", 2**62), numpy_helper.from_array(np.ones((), bool), "yes")]
    nodes = [_node("Loop", ["count", "yes", "x"], "y", body=body)]
    path = _saved(tmp_path / "m.onnx", nodes, [("x", FLOAT, [1, 4])], [("y", FLOAT, [1, 4])], stored)
    monkeypatch.setattr(onnx_file, "_SECONDS", 8.0)
    assert onnx_file._tried_sizes(path, {}).comment.startswith("not tried to the end")


def test_a_model_that_takes_all_memory_is_refused_and_kills_nothing(tmp_path):
    stored = [_numbers("shape", [2**20, 2**20])]
    nodes = [_node("ConstantOfShape", ["shape"], "large"), _node("ReduceSum", ["large"], "sum", keepdims=0),
             _node("Add", ["x", "sum"], "y")]  # fmt: skip
    path = _saved(tmp_path / "m.onnx", nodes, [("x", FLOAT, [1, 4])], [("y", FLOAT, [1, 4])], stored)
    with pytest.raises(StepError):
        onnx_file._tried_sizes(path, {})


def test_a_model_that_crashes_the_runtime_is_refused_and_kills_nothing(tmp_path, monkeypatch):
    path = _saved(tmp_path / "m.onnx", [_node("Relu", ["x"], "y")], [("x", FLOAT, [1])], [("y", FLOAT, [1])])
    task = functools.partial(onnx_file.WorkerTask, step="toy:Misbehave", name="misbehave", options={"how": "segfault"})
    crash = lambda **fields: task(inputs={}, out=fields["out"], log=fields["log"])  # noqa: E731
    monkeypatch.setattr(onnx_file, "WorkerTask", crash)
    with pytest.raises(StepError, match="ONNX Runtime crashes when it runs the model"):
        onnx_file._tried_sizes(path, {})


def test_without_onnxruntime_the_sizes_are_not_tried(tmp_path, monkeypatch):
    monkeypatch.setattr(onnx_file.imports, "location", lambda _name: None)
    guess = {"n": _ANY}
    assert onnx_file._tried_sizes(tmp_path / "m.onnx", guess) == onnx_file.TriedSizes(
        guess, "not tried, as onnxruntime is not installed"
    )
