"""Synthetic inputs: equal seeds give equal values, within the ranges that the caller names."""

from __future__ import annotations

import numpy as np
import pytest

from engine.errors import StepError
from engine.kit.inputs import synthetic
from engine.kit.inputs.token_rows import Vocabulary
from engine.kit.onnx.onnx_files import Input


def generator():
    return np.random.default_rng(0)


def test_random_rows_hold_no_padding_and_both_types():
    drawn = synthetic.row(generator(), Vocabulary(tokens=4, types=2, pad=2), 200)
    assert sorted(set(drawn["input_ids"][0].tolist())) == [0, 1, 3]
    assert set(drawn["token_type_ids"][0].tolist()) == {0, 1}


def test_rows_are_drawn_one_after_the_other_by_one_seed():
    vocabulary = Vocabulary(tokens=90)
    drawn = synthetic.rows(3, vocabulary, [4, 4])
    assert [row["input_ids"].shape for row in drawn] == [(1, 4), (1, 4)]
    assert drawn[0]["input_ids"].tolist() != drawn[1]["input_ids"].tolist()
    again = synthetic.rows(3, vocabulary, [4, 4])
    assert [row["input_ids"].tolist() for row in again] == [row["input_ids"].tolist() for row in drawn]


def test_a_dynamic_axis_has_its_own_extent_or_that_of_a_first_or_another_axis():
    specs = {
        "state": Input("state", "float32", (2, "batch", 5)),
        "x": Input("x", "float32", ("batch", 3, "time", "width")),
    }
    shapes = synthetic.shapes(specs, {"width": 9}, first=2, other=16)
    assert shapes == {"state": (2, 2, 5), "x": (2, 3, 16, 9)}


def test_an_axis_that_is_a_sum_has_the_size_of_the_sum():
    specs = {
        "past": Input("past", "float32", ("batch", "past_length")),
        "mask": Input("mask", "int64", ("batch", "past_length + 1")),
    }
    assert synthetic.shapes(specs, {"past_length": 4}, first=2, other=16)["mask"] == (2, 5)
    assert synthetic.shapes(specs, {}, first=2, other=16) == {"past": (2, 16), "mask": (2, 17)}


@pytest.mark.parametrize(
    ("dtype", "below", "most"), [("int64", 7, 6), ("uint8", None, 255), ("int32", None, 1), ("bool", None, 1)]
)
def test_integers_lie_below_their_bound(dtype, below, most):
    drawn = synthetic.tensor(generator(), dtype, (4000,), below=below)
    assert drawn.dtype.name == dtype
    assert (drawn.min(), drawn.max()) == (0, most)


def test_a_type_that_numpy_lacks_is_refused():
    with pytest.raises(StepError, match="no random values can be drawn of the type bfloat16"):
        synthetic.tensor(generator(), "bfloat16", (2,))


@pytest.mark.parametrize("kind", synthetic.MASKS)
def test_every_mask_shows_a_position_in_each_row(kind):
    mask = synthetic.mask(kind, (6, 5))
    assert mask.any(axis=1).all()
    assert mask.all() == (kind == "full")


def test_a_random_mask_hides_the_end_of_rows_and_never_all_of_one():
    mask = synthetic.random_mask(generator(), (50, 6))
    assert mask[:, 0].all()
    assert not mask.all()
    assert (np.diff(mask.astype(int)) <= 0).all()
