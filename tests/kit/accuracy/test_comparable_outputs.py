import numpy as np
import pytest

from engine.kit.accuracy import comparable_outputs
from engine.kit.accuracy.comparable_outputs import Comparable
from engine.kit.inputs.cases import Case

PLACES = 30


def case(*blocks, axis=1):
    generator = np.random.default_rng(len(blocks))
    channels = [generator.random((2, count, PLACES)) * scale for count, scale in blocks]
    output = np.concatenate(channels, axis=1)
    return Case("one", "", "tensors", {}, {"y": output if axis == 1 else output.swapaxes(1, 2)})


@pytest.mark.parametrize("axis", [1, 2])
def test_boxes_in_pixels_and_scores_are_two_parts_on_either_axis(axis):
    one = case((4, 640), (80 % PLACES, 1), axis=axis)
    divided = comparable_outputs.find([one])
    split = comparable_outputs.split(one.outputs, divided)
    assert list(split) == ["y (boxes)", "y (scores)"]
    assert split["y (boxes)"].shape[axis] == 4
    assert split["y (boxes)"].max() > 100
    assert split["y (scores)"].max() <= 1
    assert comparable_outputs.split_cases([one], divided)[0].outputs.keys() == split.keys()


def test_scores_may_stand_before_boxes():
    assert list(comparable_outputs.find([case((6, 1), (4, 640))])["y"].channels) == ["scores", "boxes"]


@pytest.mark.parametrize("blocks", [((12, 1),), ((12, 640),), ((2, 640), (10, 1)), ((4, 640), (3, 1), (3, 640))])
def test_other_outputs_stay_whole(blocks):
    assert comparable_outputs.find([case(*blocks)]) == {}


def test_outputs_with_other_axes_stay_whole():
    flat = Case("one", "", "tensors", {}, {"y": np.ones((2, 84)), "z": np.ones((2, 3, 64, 64)), "n": np.array(["a"])})
    assert comparable_outputs.find([flat]) == {}
    assert comparable_outputs.split(flat.outputs, {}) == flat.outputs


def table(*columns):
    return Case("one", "", "tensors", {}, {"y": np.stack(columns, axis=1)})


def test_columns_in_other_units_are_parts_and_their_order_does_not_matter():
    shares, prices = np.linspace(0, 1, 10), np.linspace(0, 5000, 10)
    divided = comparable_outputs.find([table(shares, prices, 1 - shares, prices / 2)])
    assert divided["y"].channels == {"columns 1, 3": (1, 3), "columns 0, 2": (0, 2)}


def test_more_columns_than_quantities_are_one_embedding():
    values = np.linspace(-1, 1, 9)
    assert comparable_outputs.find([table(*[values] * 20, values * 1000)]) == {}


SHARES = np.linspace(0, 1, 10)
SIGNED = np.linspace(-1, 1, 10)


@pytest.mark.parametrize(
    ("columns", "groups"),
    [
        ([640 * SHARES, 480 * SHARES, SHARES], [(0, 1), (2,)]),
        ([SHARES, 640 * SHARES, np.round(80 * SHARES)], [(1,), (0,), (2,)]),
        ([SIGNED, 1000 * SIGNED], [(1,), (0,)]),
        ([1e6 * SHARES, 1e3 * SIGNED, SHARES], [(0,), (1,), (2,)]),
    ],
)
def test_different_quantities_are_apart(columns, groups):
    assert comparable_outputs.divide(columns) == groups


@pytest.mark.parametrize(
    "columns",
    [
        [SHARES, SHARES / 1000],
        [SIGNED, SIGNED * 10],
        [SIGNED, SHARES * 0],
        [1000 * SIGNED, SHARES * 0],
        [SIGNED / 1e4, SHARES / 1e4],
        [SIGNED, np.round(SHARES)],
        [np.array([]), np.array([])],
    ],
)
def test_equal_quantities_stay_together(columns):
    assert comparable_outputs.divide(columns) == [(0, 1)]


def masked_case(*values, dtype=np.float32):
    return Case("one", "", "tensors", {}, {"y": np.array([values], dtype)})


def clipped(*values):
    one = masked_case(*values)
    return comparable_outputs.clip(one.outputs, comparable_outputs.find_masked([one]))["y"][0].tolist()


@pytest.mark.parametrize("low", [-1e4, -1e9, -1e30, np.finfo(np.float32).min])
def test_a_number_for_minus_infinity_counts_as_the_smallest_number(low):
    assert clipped(2.0, low, -1.0) == [2.0, -2.0, -1.0]


def test_the_built_model_may_have_another_number_for_minus_infinity():
    hidden = comparable_outputs.find_masked([masked_case(2.0, -1e30, -1.0)])
    for low in (-30000, -np.inf):
        assert comparable_outputs.clip(masked_case(2.0, low, -1.0).outputs, hidden)["y"][0].tolist() == [
            2.0,
            -2.0,
            -1.0,
        ]


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
    assert comparable_outputs.find_masked([masked_case(2, -(10**9), 1, dtype=np.int64)]) == {}


def test_a_note_says_what_the_number_counts_as():
    notes = comparable_outputs.Comparable.of([masked_case(2.5, -1e9, -1.0)]).notes()
    assert notes == ("-1e+09 in y stands for minus infinity and counts as -2.5",)


def test_boxes_are_apart_from_scores_where_the_recipe_says_so_although_both_are_small():
    output = np.random.default_rng(0).uniform(0, 1, (1, 7, 50)).astype(np.float32)
    case = Case("1", "", "sample", {}, {"output0": output})
    assert list(Comparable.of([case]).outputs(case.outputs)) == ["output0"]
    for name in ("", "output0"):
        parts = Comparable.of([case], {name: 1}).outputs(case.outputs)
        assert {part: array.shape for part, array in parts.items()} == {
            "output0 (boxes)": (1, 4, 50),
            "output0 (scores)": (1, 3, 50),
        }
