"""Smoothing: an activation's channels with outliers are made smaller, and the matching rows of its weights larger."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

ALPHAS = (None, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
"""The strengths that are tried: the share of a channel's size that moves into the weights. None is no smoothing."""
_LIMIT = 1e3
"""The largest factor: with larger factors, numbers in half precision would lose digits."""

_FAINT_ROW = 1e-5
"""The least size that a row of a weight counts as, as a share of the largest row: rows of zeros have no logarithm."""
_LEAST = 1e-30
"""The size that the largest row of a weight of nothing but zeros counts as."""


def factors(largest: np.ndarray, weight: np.ndarray, alpha: float) -> np.ndarray:
    """Return the divisor of each channel of an activation, float32 [channels]; the geometric mean of all is 1.

    `largest` is the largest absolute value of each channel on samples, `weight` is [channels, output], `alpha` is the
    strength. From SmoothQuant (Xiao et al. 2023), equation 4. A channel below the median counts as the median: scaled
    up to what the samples show, such a channel would be clipped at the first larger value on another input.
    """
    import numpy as np

    sizes = np.maximum(largest, np.median(largest)).astype(np.float64)
    sizes = np.where(sizes > 0, sizes, max(float(sizes.max(initial=0)), 1.0))
    rows = np.abs(weight).max(axis=1).astype(np.float64)
    rows = np.maximum(rows, _FAINT_ROW * max(float(rows.max(initial=0)), _LEAST))
    logs = alpha * np.log(sizes) - (1 - alpha) * np.log(rows)
    return np.asarray(np.clip(np.exp(logs - logs.mean()), 1 / _LIMIT, _LIMIT), np.float32)
