"""Smoothing: channels with outliers are made smaller in a tensor, and larger in the weights that it meets."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

ALPHAS = (None, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
"""How much of a channel's size moves into the weights; None: nothing does."""
_LIMIT = 1e3
"""Factors beyond it would leave what half precision tells apart."""


def factors(largest: np.ndarray, weight: np.ndarray, alpha: float) -> np.ndarray:
    """Return what each channel of a tensor is divided by, float32 [channels], 1 in the (geometric) middle.

    `largest` is the largest absolute value of each channel, `weight` [channels, output]. From SmoothQuant (Xiao et
    al. 2023), equation 4. Channels below the median count as if they were there: on samples they were small, and a
    tensor that is spread out as far as the samples allow clips the first outlier that they did not show.
    """
    import numpy as np

    sizes = np.maximum(largest, np.median(largest)).astype(np.float64)
    sizes = np.where(sizes > 0, sizes, max(float(sizes.max(initial=0)), 1.0))
    against = np.abs(weight).max(axis=1).astype(np.float64)
    against = np.maximum(against, 1e-5 * max(float(against.max(initial=0)), 1e-30))
    logs = alpha * np.log(sizes) - (1 - alpha) * np.log(against)
    return np.asarray(np.clip(np.exp(logs - logs.mean()), 1 / _LIMIT, _LIMIT), np.float32)
