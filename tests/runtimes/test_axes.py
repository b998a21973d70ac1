"""Axes of any size: which need a size of their own, which follow from others, and which input's axis a key means."""

import pytest

from engine.runtimes import axes


@pytest.mark.parametrize(
    ("axis", "size"),
    [("batch", 4), ("2*batch*sequence", 80), ("batch + 1", 5), ("floor(sequence/3)", 3), ("Max(batch, sequence)", 10),
     ("floor(batch/8 + 1/2) + 1", 2), ("-batch + sequence", 6), ("batch - sequence", None), ("batch/3", None),
     ("batch / (sequence - 10)", None), ("floor(batch, 2)", None), ("max()", None), ("unk__7", None), ("", None),
     ("batch sequence", None), ("__import__('os')", None), ("batch**9", None), (7, 7)],
)  # fmt: skip
def test_an_axis_may_be_an_expression_of_others(axis, size):
    assert axes.extent(axis, {"batch": 4, "sequence": 10}) == size


@pytest.mark.parametrize("text", ["", "?", "??", " ", "-1", "None", "*", "_", "7"])
def test_a_name_that_means_any_size_names_nothing(text):
    assert axes.names_nothing(text)


@pytest.mark.parametrize("text", ["N", "n", "batch", "unk__749", "p2o.DynamicDimension.0", "past + 1", "x_2", "a?"])
def test_any_other_name_is_the_name_of_an_axis(text):
    assert not axes.names_nothing(text)


def test_an_expression_of_axes_follows_and_any_other_expression_is_a_name():
    shapes = {
        "input_ids": ("batch", "sequence"),
        "attention_mask": ("batch", "past + sequence"),
        "past.0": ("batch*4", "past", 64),
        "free": ("unknown + 1", "batch-size", "batch", "2*"),
    }
    assert axes.free(shapes) == ("batch", "sequence", "past", "unknown + 1", "batch-size", "2*")
    assert axes.follow(shapes) == ("past + sequence", "batch*4")


def test_a_key_by_input_means_the_axis_at_its_index():
    shapes = {"x": ("batch", 3, "width"), "lengths": ("batch",), "mask": ("batch", "width + 1")}
    sizes = {"x[0]": 8, "x[1]": 3, "x[2]": 320, "mask[1]": 321}
    assert axes.by_name(sizes, shapes) == {"batch": 8, "width": 320}
    assert axes.by_name({"lengths": 8, "width": 9}, shapes) == {"batch": 8, "width": 9}
    unknown = {"x[3]": 1, "y[0]": 2, "height": 3}
    assert axes.by_name(unknown, shapes) == unknown


def test_the_name_of_an_axis_that_looks_like_a_key_by_input_is_the_axis():
    assert axes.by_name({"x[1]": 8}, {"x": ("x[1]", 5)}) == {"x[1]": 8}
