import numpy as np
import pytest

from engine.kit.accuracy import parts
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
    divided = parts.find([one])
    split = parts.split(one.outputs, divided)
    assert list(split) == ["y (boxes)", "y (scores)"]
    assert split["y (boxes)"].shape[axis] == 4
    assert split["y (boxes)"].max() > 100
    assert split["y (scores)"].max() <= 1
    assert parts.split_cases([one], divided)[0].outputs.keys() == split.keys()


def test_scores_may_stand_before_boxes():
    assert list(parts.find([case((6, 1), (4, 640))])["y"].channels) == ["scores", "boxes"]


@pytest.mark.parametrize("blocks", [((12, 1),), ((12, 640),), ((2, 640), (10, 1)), ((4, 640), (3, 1), (3, 640))])
def test_other_outputs_stay_whole(blocks):
    assert parts.find([case(*blocks)]) == {}


def test_outputs_with_other_axes_stay_whole():
    flat = Case("one", "", "tensors", {}, {"y": np.ones((2, 84)), "z": np.ones((2, 3, 64, 64)), "n": np.array(["a"])})
    assert parts.find([flat]) == {}
    assert parts.split(flat.outputs, {}) == flat.outputs


def table(*columns):
    return Case("one", "", "tensors", {}, {"y": np.stack(columns, axis=1)})


def test_columns_in_other_units_are_parts_and_their_order_does_not_matter():
    shares, prices = np.linspace(0, 1, 10), np.linspace(0, 5000, 10)
    divided = parts.find([table(shares, prices, 1 - shares, prices / 2)])
    assert divided["y"].channels == {"columns 1, 3": (1, 3), "columns 0, 2": (0, 2)}


def test_more_columns_than_quantities_are_one_embedding():
    values = np.linspace(-1, 1, 9)
    assert parts.find([table(*[values] * 20, values * 1000)]) == {}
