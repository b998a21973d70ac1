import numpy as np
import pytest

from engine.kit.accuracy import masked
from engine.kit.inputs.cases import Case


def case(*values, dtype=np.float32):
    return Case("one", "", "tensors", {}, {"y": np.array([values], dtype)})


def clipped(*values):
    one = case(*values)
    return masked.clip(one.outputs, masked.find([one]))["y"][0].tolist()


@pytest.mark.parametrize("low", [-1e4, -1e9, -1e30, np.finfo(np.float32).min])
def test_a_number_for_minus_infinity_counts_as_the_smallest_number(low):
    assert clipped(2.0, low, -1.0) == [2.0, -2.0, -1.0]


def test_the_built_model_may_have_another_number_for_minus_infinity():
    hidden = masked.find([case(2.0, -1e30, -1.0)])
    for low in (-30000, -np.inf):
        assert masked.clip(case(2.0, low, -1.0).outputs, hidden)["y"][0].tolist() == [2.0, -2.0, -1.0]


@pytest.mark.parametrize(
    "values",
    [
        (2.0, -100.0, -1.0),
        (2.0, -40000.0, -39000.0),
        (0.0, -1e9, 0.0),
        (-1e9, -1e9, -1e9),
        (500.0, -20000.0, 3.0),
        (2.0, 1e9, 1.0),
    ],
)
def test_other_numbers_stay_as_they_are(values):
    assert clipped(*values) == list(values)


def test_nan_stays_nan_and_numbers_that_are_no_floats_stay():
    assert np.isnan(clipped(2.0, -1e9, np.nan)[2])
    assert masked.find([case(2, -(10**9), 1, dtype=np.int64)]) == {}


def test_a_note_says_what_the_number_counts_as():
    notes = masked.notes(masked.find([case(2.5, -1e9, -1.0)]))
    assert notes == ("-1e+09 in y stands for minus infinity and counts as -2.5",)
