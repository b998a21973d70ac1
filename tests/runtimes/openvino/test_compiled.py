"""Calls of compiled models: their inputs are refused where they do not suit the model."""

import graphs
import models
import numpy as np
import openvino_here  # noqa: F401 - skips where OpenVINO is missing
import pytest

from engine.errors import StepError
from engine.kit.onnx import onnx_files
from engine.recipe.values import Range
from engine.runtimes.execution import Execution
from engine.runtimes.onnxruntime import session as ort
from engine.runtimes.openvino import ir
from engine.runtimes.openvino.compiled import Calls
from engine.steps.openvino_build import OpenvinoBuild

X = np.ones((3, 8), np.float32)


@pytest.fixture
def calls(tmp_path):
    """Calls of two linear layers of 8 x 16 and 16 x 4."""
    graph = graphs.write(tmp_path / "layers", graphs.layers(8, 16))
    return Calls(ir.of_onnx(graph / onnx_files.MODEL), threads=1)


def test_inputs_get_the_type_of_the_model_and_a_missing_one_is_named(calls):
    assert calls.run({"x": X.astype(np.float64)})["y"].shape == (3, 4)
    assert calls.run({"x": X, "other": X})["y"].dtype == np.float32
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


EXECUTION = Execution(runtime="openvino", options={})
ONE = Range(min=1, opt=1, max=1)


def exactly(**sizes):
    """A profile with one size for each axis."""
    return {axis: Range(min=size, opt=size, max=size) for axis, size in sizes.items()}


RANGES = {"batch": Range(min=1, opt=4, max=8), "sequence": Range(min=1, opt=16, max=64)}


def built(out, graph, *profiles, checkpoint=None):
    OpenvinoBuild(shapes=profiles).run(out, checked=graph, checkpoint=checkpoint)
    return EXECUTION.by.runner(out, EXECUTION, threads=1)


@pytest.fixture(scope="module", params=["bert", "roberta", "distilbert"])
def text(request, tmp_path_factory):
    """A text classifier with its tokenizer, and its fixed profiles without and with a profile of ranges."""
    folder = tmp_path_factory.mktemp(request.param)
    exported = graphs.tiny(request.param)
    checkpoint = exported.parent / "checkpoint"
    fixed = [exactly(batch=1, sequence=8), exactly(batch=4, sequence=16)]
    only = built(folder / "only", exported, *fixed, checkpoint=checkpoint)
    both = built(folder / "both", exported, *fixed, RANGES, checkpoint=checkpoint)
    return exported, only, both


def rows(exported, batch, sequence):
    """Tokens that are no padding, with masks of ones."""
    names = ort.session(exported, threads=1).get_inputs()
    ids = np.random.default_rng(batch * sequence).integers(10, 30, (batch, sequence))
    columns = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
    return {each.name: columns[each.name] for each in names}


@pytest.mark.parametrize(("batch", "sequence"), [(1, 8), (1, 5), (2, 9), (4, 16), (3, 16)])
def test_texts_are_padded_to_a_profile_and_answered_as_without_padding(text, batch, sequence):
    exported, only, both = text
    inputs = rows(exported, batch, sequence)
    expected = ort.run(ort.session(exported, threads=1), inputs)["logits"]
    for runner in (only, both):
        answer = runner.run(inputs)["logits"]
        assert answer.shape == expected.shape
        assert np.abs(answer - expected).max() < 0.05 * np.abs(expected).max()  # bf16 on some CPUs
        runner.prepare(inputs)()
    shapes = ((1, 8), (4, 16))
    padded = next(each for each in shapes if batch <= each[0] and sequence <= each[1])
    assert only.work(inputs) == only.work(rows(exported, *padded)), "the work is that of the padded shape"


def test_only_a_profile_of_ranges_takes_what_no_fixed_profile_takes(text):
    exported, only, both = text
    inputs = rows(exported, 5, 20)
    shapes = {name: array.shape for name, array in inputs.items()}
    assert (only.takes(shapes), both.takes(shapes)) == (False, True)
    assert both.run(inputs)["logits"].shape[0] == 5
    with pytest.raises(StepError, match="no profile takes batch 5, sequence 20; the profiles are 1x8, 4x16"):
        only.run(inputs)


def test_images_get_further_rows(tmp_path):
    graph = models.onnx_vision(tmp_path / "vision.onnx").parent
    (graph / "vision.onnx").rename(graph / "model.onnx")
    runner = built(tmp_path / "out", graph, exactly(batch=4))
    images = np.random.default_rng(0).standard_normal((3, 3, 32, 32)).astype(np.float32)
    expected = ort.run(ort.session(graph, threads=1), {"image": images})["logits"]
    assert np.abs(runner.run({"image": images})["logits"] - expected).max() < 0.05 * np.abs(expected).max()
    assert not runner.takes({"image": (5, 3, 32, 32)})


def test_what_has_no_mask_is_not_padded_and_profiles_that_do_not_fit_are_refused(tmp_path):
    models.onnx_audio(tmp_path / "model.onnx")
    runner = built(tmp_path / "audio", tmp_path, exactly(batch=1, samples=400))
    assert [runner.takes({"waveform": (1, samples)}) for samples in (400, 399)] == [True, False]
    models.onnx_text(tmp_path / "model.onnx", mask=False)
    runner = built(tmp_path / "text", tmp_path, exactly(batch=2, sequence=8))
    assert [runner.takes({"input_ids": (2, sequence)}) for sequence in (8, 7)] == [True, False]
    with pytest.raises(StepError, match="leaves open: sequence"):
        built(tmp_path / "out", tmp_path, exactly(batch=1))


def test_the_same_profiles_give_the_same_bytes(tmp_path):
    models.onnx_text(tmp_path / "model.onnx")
    for name in ("first", "second"):
        built(tmp_path / name, tmp_path, exactly(batch=1, sequence=8), RANGES)
    assert (tmp_path / "first/model.xml").read_bytes() == (tmp_path / "second/model.xml").read_bytes()
