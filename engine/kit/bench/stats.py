"""Statistics of latencies: percentiles, and the ratios of two models that were measured side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence

MS_DIGITS = 4
"""Decimal places of times in milliseconds in a report; the last place is a tenth of a microsecond."""
RATIO_DIGITS = 4
"""Decimal places of ratios and shares in a report."""


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which `share` (0 to 1) of the values lie.

    Between two neighbouring values the percentile is interpolated linearly, as numpy does by default (R's type 7;
    Hyndman and Fan, "Sample Quantiles in Statistical Packages", 1996). Raises ValueError where `values` is empty.
    """
    if not values:
        raise ValueError("a percentile needs at least one value")
    ordered = sorted(values)
    position = share * (len(ordered) - 1)
    below, above = math.floor(position), math.ceil(position)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


def median(values: Sequence[float]) -> float:
    """Return the median of the values: the middle one, or the mean of the two in the middle."""
    return percentile(values, 0.5)


def ratios(rival: Sequence[Sequence[float]], ours: Sequence[Sequence[float]]) -> list[float]:
    """Return for each round how many times longer the rival takes than the recipe's own model.

    The ratio of a round is the rival's median latency divided by the own model's median latency. A machine that slows
    down for a while slows down both models in a round, and the ratio of the round stays the same.
    """
    return [median(theirs) / median(mine) for theirs, mine in zip(rival, ours, strict=True)]
