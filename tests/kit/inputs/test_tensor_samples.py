"""Samples as arrays: rows of batches or whole inputs, held against what the model takes."""

from __future__ import annotations

import numpy as np
import pytest

from engine.errors import StepError
from engine.kit.inputs import tensor_samples
from engine.kit.onnx.onnx_files import Input

IMAGE = {"image": Input("image", "float32", ("batch", 3, 8, 8))}
FRAMES = {"frames": Input("frames", "float32", ("time", "batch", 5))}


@pytest.fixture
def arrays(tmp_path):
    def write(**named):
        np.savez(tmp_path / "samples.npz", **named)
        return tmp_path / "samples.npz"

    return write


def refusal(path, specs):
    with pytest.raises(StepError) as caught:
        tensor_samples.read(path, specs)
    return str(caught.value)


def test_each_row_is_a_batch_of_one_in_the_type_that_the_model_takes(arrays):
    images = np.random.default_rng(0).standard_normal((3, 3, 8, 8))
    cases = tensor_samples.read(arrays(image=images, label=np.array([2, 0, 1]), other=np.zeros(9)), IMAGE)
    assert [(case.name, case.kind, case.label) for case in cases] == [
        ("row 0", "tensors", 2),
        ("row 1", "tensors", 0),
        ("row 2", "tensors", 1),
    ]
    assert np.array_equal(cases[1].inputs["image"], images[1:2].astype("float32"))
    assert list(cases[1].inputs) == ["image"]


def test_an_array_with_one_axis_more_holds_whole_inputs(arrays):
    frames = np.random.default_rng(0).standard_normal((4, 7, 1, 5)).astype("float32")
    cases = tensor_samples.read(arrays(frames=frames), FRAMES)
    assert len(cases) == 4
    assert np.array_equal(cases[2].inputs["frames"], frames[2])


SPEECH = {
    "input": Input("input", "float32", ("batch", "samples")),
    "state": Input("state", "float32", (2, "batch", 4)),
    "sr": Input("sr", "int64", ()),
}


def test_a_single_number_is_the_input_of_every_sample_and_a_number_a_row_that_of_its_own(arrays):
    waves, states = np.ones((3, 512), "float32"), np.zeros((3, 2, 1, 4), "float32")
    for rate, expected in ((16000, [16000] * 3), ([8000, 16000, 8000], [8000, 16000, 8000])):
        cases = tensor_samples.read(arrays(input=waves, state=states, sr=np.array(rate, "int32")), SPEECH)
        assert [case.inputs["sr"].tolist() for case in cases] == expected
        assert {name: tensor.shape for name, tensor in cases[1].inputs.items()} == {
            "input": (1, 512), "state": (2, 1, 4), "sr": (),
        }  # fmt: skip
        assert all(isinstance(case.inputs["sr"], np.ndarray) for case in cases)
        assert cases[0].inputs["sr"].dtype.name == "int64"


def test_a_model_of_scalars_alone_runs_on_one_number(arrays):
    specs = {name: Input(name, "float32", ()) for name in ("a", "b")}
    assert len(tensor_samples.read(arrays(a=1.5, b=2.5), specs)) == 1
    assert [case.inputs["b"].tolist() for case in tensor_samples.read(arrays(a=1.5, b=[1.0, 2.0]), specs)] == [1, 2]


def test_a_state_given_once_for_all_samples_leads_to_the_shape_that_the_next_run_takes(arrays):
    waves = np.ones((3, 512), "float32")
    hint = refusal(arrays(input=waves, state=np.zeros((2, 1, 4), "float32"), sr=16000), SPEECH).rsplit("hint: ", 1)[1]
    assert hint == "the first axis of state is no batch: give one whole input for each sample, here 3 x 2 x 1 x 4"
    shape = tuple(map(int, hint.rsplit("here ", 1)[1].split(" x ")))
    assert len(tensor_samples.read(arrays(input=waves, state=np.zeros(shape, "float32"), sr=16000), SPEECH)) == 3


@pytest.mark.parametrize("spec", [Input("x", "float32", ("n", 3, 4)), Input("x", "float32", (2, 3, 4))])
def test_too_few_axes_lead_to_a_shape_that_the_next_run_takes(arrays, spec):
    error = refusal(arrays(x=np.zeros(3, "float32")), {"x": spec})
    shape = error.rsplit("give the shape ", 1)[1].strip("[]").replace("samples", "5").split(", ")
    assert len(tensor_samples.read(arrays(x=np.zeros(tuple(map(int, shape)), "float32")), {"x": spec})) == 5


def test_a_fixed_batch_takes_as_many_rows_at_once(arrays):
    specs = {"image": Input("image", "float32", (2, 3, 8, 8))}
    cases = tensor_samples.read(arrays(image=np.zeros((5, 3, 8, 8), "float32")), specs)
    assert [case.inputs["image"].shape for case in cases] == [(2, 3, 8, 8)] * 2
    assert refusal(arrays(image=np.zeros((1, 3, 8, 8), "float32")), specs) == (
        "samples.npz has 1 samples, and the model takes 2 at once"
    )


def test_a_missing_array_lists_what_there_is_and_what_is_wanted(arrays):
    assert refusal(arrays(picture=np.zeros((1, 3, 8, 8))), IMAGE) == (
        "samples.npz has no array for the input image\n"
        "  it holds: picture\n"
        "  the model takes image: float32 [batch, 3, 8, 8]\n"
        "hint: save an array for each input, under the input's name: numpy.savez(path, **{'image': array, ...})"
    )


@pytest.mark.parametrize(
    ("array", "extent", "what"),
    [
        (np.zeros((2, 4)), 4, "has the wrong type\n  in the file: float64 [2, 4]"),
        (np.zeros((2, 4), int), 5, "has the wrong shape\n  in the file: int64 [2, 4]"),
        (np.zeros(2, int), 4, "has the wrong number of axes\n  in the file: int64 [2]"),
    ],
)
def test_an_array_that_does_not_fit_shows_both_sides(arrays, array, extent, what):
    text = refusal(arrays(ids=array), {"ids": Input("ids", "int64", ("n", extent))})
    assert text.startswith(f"the array ids in samples.npz {what}")
    assert f"  the model takes ids: int64 [n, {extent}]" in text


def test_arrays_of_different_lengths_are_counted(arrays):
    path = arrays(image=np.zeros((2, 3, 8, 8), "float32"), label=np.zeros(3, int))
    assert refusal(path, IMAGE) == (
        "the arrays in samples.npz must have the same number of rows, at least one\n  image: 2 rows\n  label: 3 rows"
    )
    empty = arrays(image=np.zeros((0, 3, 8, 8), "float32"))
    assert refusal(empty, IMAGE).endswith("at least one\n  image: 0 rows")


@pytest.mark.parametrize("label", [np.array([0.5, 1.0]), np.eye(2, dtype=int), np.array(["bad", "good"]), 1])
def test_labels_that_are_not_one_whole_number_a_row_are_refused(tmp_path, label):
    np.savez(tmp_path / "labelled.npz", x=np.zeros((2, 3), np.float32), label=label)
    specs = {"x": Input("x", "float32", ("batch", 3))}
    error = refusal(tmp_path / "labelled.npz", specs)
    assert error.startswith("the array label in labelled.npz does not hold one whole number a row\n  in the file: ")
    assert error.endswith("hint: give the number of the expected class of each row")


def test_a_file_that_is_no_archive_or_holds_pickles_is_refused(arrays, tmp_path):
    broken = tmp_path / "broken.npz"
    broken.write_bytes(b"PK\x03\x04 and nothing more")
    assert refusal(broken, IMAGE).startswith("broken.npz cannot be read\n")
    pickled = arrays(image=np.array([{"a": 1}], dtype=object))
    assert refusal(pickled, IMAGE).endswith("hint: save it with numpy.savez(path, **arrays), without pickled objects")


def test_a_single_array_that_is_called_an_archive_is_refused(tmp_path):
    with (tmp_path / "single.npz").open("wb") as file:
        np.save(file, np.zeros((3, 3, 8, 8), np.float32))
    for read in (lambda path: tensor_samples.read(path, IMAGE), tensor_samples.headers):
        with pytest.raises(StepError, match=r"single.npz cannot be read") as caught:
            read(tmp_path / "single.npz")
        assert caught.value.facts == ("the file holds a single array without a name (numpy.save)",)


def test_a_number_in_an_array_of_one_leads_to_a_number_that_the_next_run_takes(arrays):
    waves, states = np.ones((3, 512), "float32"), np.zeros((3, 2, 1, 4), "float32")
    error = refusal(arrays(input=waves, state=states, sr=np.array([16000])), SPEECH)
    assert error.endswith("hint: give sr as a number without an axis, for all samples, or as a number for each sample")
    assert len(tensor_samples.read(arrays(input=waves, state=states, sr=np.array(16000)), SPEECH)) == 3


def test_a_wrong_type_leads_to_an_array_that_the_next_run_takes(arrays):
    images = np.zeros((2, 3, 8, 8))
    assert refusal(arrays(image=images.astype(complex)), IMAGE).endswith("hint: save it as float32")
    assert len(tensor_samples.read(arrays(image=images.astype("float32")), IMAGE)) == 2
