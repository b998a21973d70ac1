import pytest

from engine.errors import StepError
from engine.kit.onnx.onnx_files import Input
from engine.recipe.values import Range
from engine.runtimes import profiles as trt_profiles

TOKENS = {name: Input(name, "int64", ("batch", "sequence")) for name in ("input_ids", "attention_mask")}


def extents(**axes):
    return {axis: Range(min=least, opt=usual, max=greatest) for axis, (least, usual, greatest) in axes.items()}


def test_every_input_with_a_free_axis_gets_its_shapes_in_every_profile():
    inputs = {**TOKENS, "scale": Input("scale", "float32", (1,))}
    profiles = [extents(batch=(1, 8, 32), sequence=(1, 128, 512)), extents(batch=(1, 1, 1), sequence=(1, 16, 128))]
    shapes = trt_profiles.shapes(inputs, profiles)
    assert shapes[0] == dict.fromkeys(TOKENS, ((1, 1), (8, 128), (32, 512)))
    assert shapes[1] == dict.fromkeys(TOKENS, ((1, 1), (1, 16), (1, 128)))
    assert trt_profiles.greatest(profiles) == {"batch": 32, "sequence": 512}
    assert trt_profiles.shapes({"x": Input("x", "float32", (1, 4))}, ()) == [{}]


def test_a_profile_that_leaves_an_axis_open_is_refused_with_one_that_does_not():
    with pytest.raises(StepError, match="leaves open: sequence") as caught:
        trt_profiles.shapes(TOKENS, [extents(batch=(1, 2, 4))])
    assert "input_ids: batch x sequence" in str(caught.value)
    assert "batch: [1, 2, 4], sequence: [" in caught.value.hint


def test_a_profile_with_an_axis_that_the_model_lacks_is_refused():
    with pytest.raises(StepError, match="does not have: length"):
        trt_profiles.shapes(TOKENS, [extents(batch=(1, 2, 4), sequence=(1, 2, 4), length=(1, 2, 4))])
