"""Smoothing: an activation's channels with outliers are made smaller, and the matching rows of its weights larger."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

ALPHAS = (None, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
"""The smoothing strengths that are tried; a strength is the share of a channel's size that moves into the weights.

None stands for no smoothing.
"""
_LIMIT = 1e3
"""Upper limit of a smoothing factor; with larger factors, numbers in half precision would lose digits."""

_FAINT_ROW = 1e-5
"""Lower limit of a weight row's size in the smoothing formula, as a share of the largest row's size.

The number 0 has no logarithm.
"""
_LEAST = 1e-30
"""The size of the largest row that the smoothing formula assumes for a weight whose values are all 0."""


def factors(largest: np.ndarray, weight: np.ndarray, alpha: float) -> np.ndarray:
    """Return the divisor of each channel of an activation, float32 [channels]; their geometric mean is 1.

    `largest` is the largest absolute value of each channel on samples, `weight` is [channels, output], `alpha` is the
    strength. The formula of the divisors is equation 4 of SmoothQuant (Xiao et al. 2023). A channel whose largest
    absolute value is below the median of all channels gets the median as its size in the formula. If the size were
    smaller, smoothing would fit the channel closely to its values on the samples, and a larger value on another input
    would be clipped.
    """
    import numpy as np

    sizes = np.maximum(largest, np.median(largest)).astype(np.float64)
    sizes = np.where(sizes > 0, sizes, max(float(sizes.max(initial=0)), 1.0))
    rows = np.abs(weight).max(axis=1).astype(np.float64)
    rows = np.maximum(rows, _FAINT_ROW * max(float(rows.max(initial=0)), _LEAST))
    logs = alpha * np.log(sizes) - (1 - alpha) * np.log(rows)
    return np.asarray(np.clip(np.exp(logs - logs.mean()), 1 / _LIMIT, _LIMIT), np.float32)
