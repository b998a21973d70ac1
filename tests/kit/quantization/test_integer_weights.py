"""Integer weights: each column is rounded with a scale of its own, in chunks of rows as in one piece."""

import numpy as np
import pytest

from engine.kit.quantization import integer_weights


@pytest.mark.parametrize(("reduce_range", "most"), [(False, 127), (True, 63)])
def test_each_column_uses_its_whole_range(reduce_range, most):
    weight = np.random.default_rng(0).standard_normal((40, 6)).astype(np.float32) * np.logspace(-3, 3, 6, dtype="f")
    integers, scales = integer_weights.by_column(weight, reduce_range=reduce_range)
    assert (integers.dtype, scales.dtype) == (np.int8, np.float32)
    assert (np.abs(integers).max(axis=0) == most).all()
    assert (np.abs(integers * scales - weight) <= scales * 0.5001).all()


def test_a_column_of_zeros_stays_one():
    integers, scales = integer_weights.by_column(np.zeros((4, 2), np.float32), reduce_range=False)
    assert not integers.any()
    assert np.isfinite(scales).all()


def test_chunks_of_rows_give_the_same_numbers(monkeypatch):
    weight = np.random.default_rng(0).standard_normal((50, 7)).astype(np.float32)
    whole = integer_weights.by_column(weight, reduce_range=False)
    monkeypatch.setattr(integer_weights, "_CHUNK", 21)
    for one, other in zip(whole, integer_weights.by_column(weight, reduce_range=False), strict=True):
        assert np.array_equal(one, other)
