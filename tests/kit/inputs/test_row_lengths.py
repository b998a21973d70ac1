"""Lengths of rows are drawn as lengths, and not as any other integer."""

from __future__ import annotations

import numpy as np

from engine.kit.inputs import random_inputs, row_lengths
from engine.kit.onnx.onnx_files import Input
from engine.recipe.values import Range

TEXT = {
    "char_inputs": Input("char_inputs", "int64", ("batch", "seq")),
    "input_lengths": Input("input_lengths", "int64", ("batch",)),
}
SPEECH = {
    "length": Input("length", "int64", ("batch",)),
    "audio_signal": Input("audio_signal", "float32", ("batch", 80, "time")),
}


def test_a_row_runs_along_the_first_dynamic_axis_after_the_first():
    assert row_lengths.longest(TEXT, {"char_inputs": (2, 7), "input_lengths": (2,)}) == {"input_lengths": 7}
    assert row_lengths.longest(SPEECH, {"length": (2,), "audio_signal": (2, 80, 160)}) == {"length": 160}


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
    assert row_lengths.longest(specs, shapes) == {}


def test_random_lengths_are_within_their_rows():
    profile = {"batch": Range(min=50, opt=60, max=70), "seq": Range(min=1, opt=5, max=9)}
    for drawn in random_inputs.tensors(TEXT, {}, [profile]):
        longest = drawn["char_inputs"].shape[1]
        assert drawn["input_lengths"].dtype == np.int64
        assert set(drawn["input_lengths"].tolist()) == set(range(1, longest + 1))
