"""Weights in blocks: what ONNX Runtime multiplies with is near the weight, however the weight is read."""

import logging

import numpy as np
import pytest

from engine.kit.quantization.weight_only import blocks


def weight(inputs=96, outputs=40):
    return np.random.default_rng(3).standard_normal((inputs, outputs)).astype(np.float32)


def numbers(packed, bits, inputs):
    """Return the float32 weight [inputs, outputs] that a packed weight stands for."""

    def apart(codes):
        return codes if bits == 8 else np.stack([codes & 15, codes >> 4], axis=-1).reshape(*codes.shape[:-1], -1)

    codes, zeros = apart(packed.codes).astype(np.float32), apart(packed.zero_points)[:, : packed.scales.shape[1], None]
    return ((codes - zeros) * packed.scales[..., None]).reshape(len(codes), -1)[:, :inputs].T


@pytest.mark.parametrize(("bits", "steps"), [(4, 15), (8, 255)])
@pytest.mark.parametrize("inputs", [96, 70])
def test_each_number_is_within_one_step_of_its_block(bits, steps, inputs):
    values = weight(inputs)
    packed = blocks.pack(values, bits)
    assert packed.codes.shape == (40, 3, 32 * bits // 8)
    spread = values.max() - values.min()
    assert np.abs(numbers(packed, bits, inputs) - values).max() <= spread / steps


@pytest.mark.parametrize("bits", [4, 8])
def test_a_weight_that_is_read_in_parts_or_transposed_is_the_same(bits, monkeypatch):
    values = weight()
    whole = blocks.pack(values, bits)
    monkeypatch.setattr(blocks, "_NUMBERS", 96 * 7)
    for packed in (blocks.pack(values, bits), blocks.pack(np.ascontiguousarray(values.T), bits, outputs_first=True)):
        for part in ("codes", "scales", "zero_points"):
            assert np.array_equal(getattr(packed, part), getattr(whole, part))


def test_the_library_changes_no_other_packages_log():
    level = logging.getLogger().level
    blocks._quantize.cache_clear()
    blocks.pack(weight(), 4)
    assert logging.getLogger().level == level
