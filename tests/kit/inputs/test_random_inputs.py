"""Random tensors keep to what the graph and the profiles show."""

from __future__ import annotations

import models
import numpy as np
import onnx
import pytest

from engine.errors import StepError
from engine.kit.inputs import index_ranges, random_inputs
from engine.kit.inputs.token_rows import RowLimits, Vocabulary
from engine.kit.onnx import onnx_files
from engine.kit.onnx.onnx_files import Input
from engine.recipe.values import Range


def test_integers_stay_below_the_rows_of_the_table_they_look_into(tmp_path):
    model = onnx.load(models.onnx_many_inputs(tmp_path / "model.onnx"))
    assert index_ranges.of(model) == {"user": 10}
    users = [inputs["user"] for inputs in random_inputs.tensors(onnx_files.inputs(model), {"user": 10}, ())]
    assert all(((user >= 0) & (user < 10)).all() for user in users)


def test_profiles_give_their_least_usual_and_greatest_extents():
    specs = {"waveform": Input("waveform", "float32", ("batch", "samples"))}
    profile = {"batch": Range(min=1, opt=2, max=4), "samples": Range(min=100, opt=160, max=320)}
    shapes = [inputs["waveform"].shape for inputs in random_inputs.tensors(specs, {}, [profile])]
    assert shapes == [(1, 100), (2, 160), (4, 320)]


def test_a_profile_of_gigabytes_is_not_drawn_at_its_far_end():
    specs = {"image": Input("image", "float32", ("batch", 3, 64, 64))}
    profile = {"batch": Range(min=1, opt=2, max=1_000_000)}
    assert [inputs["image"].shape[0] for inputs in random_inputs.tensors(specs, {}, [profile])] == [1, 2]


def test_masks_are_ones_with_a_tail_of_zeros_and_floats_are_normal():
    specs = {
        "src_mask": Input("src_mask", "bool", ("batch", "time")),
        "values": Input("values", "float16", ("batch", "time")),
        "flag": Input("flag", "int8", ()),
        "pixels": Input("pixels", "uint8", ("batch", 8)),
    }
    for inputs in random_inputs.tensors(specs, {}, ()):
        mask = inputs["src_mask"].astype(int)
        assert mask[:, 0].all()
        assert (np.diff(mask, axis=1) <= 0).all()
        assert {name: tensor.dtype.name for name, tensor in inputs.items()} == {n: v.dtype for n, v in specs.items()}
        assert inputs["values"].min() < 0
        assert inputs["flag"] in (0, 1)
        assert inputs["pixels"].max() > 1


def test_the_same_tensors_are_drawn_every_time():
    specs = {"x": Input("x", "float32", ("batch", 3))}
    first, second = ([inputs["x"].tobytes() for inputs in random_inputs.tensors(specs, {}, ())] for _ in range(2))
    assert first == second
    assert len(set(first)) == len(first)


def test_random_rows_have_lengths_within_the_limits():
    lengths = [
        inputs["input_ids"].shape[1] for inputs in random_inputs.rows(Vocabulary(9), RowLimits(sequence=(4, 20)))
    ]
    assert lengths == [4, 8, 16, 20]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (
            Input("x", "float32", (), ranked=False),
            "the model does not state the number of axes of its input x\nhint: export it with shapes",
        ),
        (Input("x", "object", (3,)), "the model's input x is text: that is not supported"),
        (Input("x", "bfloat16", (3,)), "the model's input x is bfloat16: that is not supported yet"),
    ],
)
def test_an_input_that_cannot_be_drawn_says_why(value, text):
    with pytest.raises(StepError) as caught:
        list(random_inputs.tensors({"x": value}, {}, ()))
    assert str(caught.value).startswith(text)
    assert caught.value.hint


TEXT = {
    "char_inputs": Input("char_inputs", "int64", ("batch", "seq")),
    "input_lengths": Input("input_lengths", "int64", ("batch",)),
}
SPEECH = {
    "length": Input("length", "int64", ("batch",)),
    "audio_signal": Input("audio_signal", "float32", ("batch", 80, "time")),
}


def test_a_row_runs_along_the_first_dynamic_axis_after_the_first():
    assert random_inputs.full_rows(TEXT, {"char_inputs": (2, 7), "input_lengths": (2,)}) == {"input_lengths": 7}
    assert random_inputs.full_rows(SPEECH, {"length": (2,), "audio_signal": (2, 80, 160)}) == {"length": 160}


def test_other_inputs_are_no_lengths():
    specs = {
        "wavelength": Input("wavelength", "int64", ("batch",)),
        "length_scale": Input("length_scale", "int64", ("batch",)),
        "lengths": Input("lengths", "float32", ("batch",)),
        "max_length": Input("max_length", "int64", (1,)),
        "length": Input("length", "int64", ()),
        "x": Input("x", "float32", ("batch", 4)),
    }
    shapes = {name: tuple(2 if axis == "batch" else axis for axis in spec.shape) for name, spec in specs.items()}
    assert random_inputs.full_rows(specs, shapes) == {}


def test_random_lengths_are_within_their_rows():
    profile = {"batch": Range(min=50, opt=60, max=70), "seq": Range(min=1, opt=5, max=9)}
    for drawn in random_inputs.tensors(TEXT, {}, [profile]):
        longest = drawn["char_inputs"].shape[1]
        assert drawn["input_lengths"].dtype == np.int64
        assert set(drawn["input_lengths"].tolist()) == set(range(1, longest + 1))
