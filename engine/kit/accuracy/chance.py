"""Chance: whether two answers to the same inputs differ by more than rounding."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

_ROUNDING = 1e-3
"""Upper limit of a rounding difference between outputs for the same inputs, as a share of the largest number."""


def is_same(first: np.ndarray, second: np.ndarray) -> bool:
    """Whether two outputs differ by rounding at most, as they do where memory alignment changes the order of a sum."""
    import numpy as np

    if first.shape != second.shape or first.dtype.kind != "f":
        return np.array_equal(first, second)
    largest = float(np.abs(first[np.isfinite(first)]).max(initial=0))
    return np.allclose(first, second, rtol=0, atol=_ROUNDING * largest, equal_nan=True)
