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
    assert parts.find([case((6, 1), (4, 640))])["y"].labels == ("scores", "boxes")


@pytest.mark.parametrize("blocks", [((12, 1),), ((12, 640),), ((2, 640), (10, 1)), ((4, 640), (3, 1), (3, 640))])
def test_other_outputs_stay_whole(blocks):
    assert parts.find([case(*blocks)]) == {}


def test_outputs_with_other_axes_stay_whole():
    flat = Case("one", "", "tensors", {}, {"y": np.ones((2, 84)), "z": np.ones((2, 3, 64, 64)), "n": np.array(["a"])})
    assert parts.find([flat]) == {}
    assert parts.split(flat.outputs, {}) == flat.outputs
