"""Numbers of few bits: symmetric, never beyond the largest, with scales that half precision holds."""

import numpy as np
import pytest

from engine.kit.quantization import low_bits


@pytest.mark.parametrize(("kind", "most"), [("int8", 127), ("fp8", 448), ("int4", 7)])
def test_what_is_beyond_the_range_becomes_the_largest_number(kind, most):
    values = np.array([-1e6, -1, 0, 1, 1e6], np.float32)
    assert low_bits.there_and_back(values, np.float32(1), kind).tolist() == [-most, -1, 0, 1, most]


@pytest.mark.parametrize("kind", ["int8", "fp8", "int4"])
def test_the_largest_value_is_never_clipped(kind):
    largest = np.random.default_rng(0).lognormal(0, 4, 500).astype(np.float32)
    back = low_bits.there_and_back(largest, low_bits.scales(largest, kind), kind)
    np.testing.assert_allclose(back, largest, rtol=0.08)


def test_a_channel_of_zeros_stays_zero():
    weight = np.zeros((128, 2), np.float32)
    weight[:, 1] = 3
    scales = low_bits.weight_scales(weight, "int8")
    assert low_bits.there_and_back(weight, scales, "int8")[:, 0].tolist() == [0] * 128


def test_int8_has_a_scale_per_output_and_int4_one_per_block_of_inputs():
    weight = np.random.default_rng(0).standard_normal((256, 3)).astype(np.float32)
    assert low_bits.weight_scales(weight, "int8").shape == (3,)
    assert low_bits.weight_scales(weight, "int4").shape == (2, 3)
    assert low_bits.spread(low_bits.weight_scales(weight, "int4"), "int4").shape == (256, 3)
    assert low_bits.weight_scales(weight, "fp8").shape == ()
