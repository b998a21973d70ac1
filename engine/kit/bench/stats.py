"""Statistics of latencies: percentiles, noise, and ratios of what was measured side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from engine.reporting import measured


@dataclass(frozen=True, kw_only=True)
class Latencies:
    """What many calls took; a field with a label is a column of the table."""

    mean_ms: float = field(metadata=measured("mean", unit="ms", digits=3))
    p50_ms: float = field(metadata=measured("p50", unit="ms", digits=3))
    p95_ms: float = field(metadata=measured("p95", unit="ms", digits=3))
    p99_ms: float = field(metadata=measured("p99", unit="ms", digits=3))
    runs: int
    noise: float
    """How far the middle half of the rounds' medians lies apart, as a share."""


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which `share` (0 to 1) of the values lie.

    Between two neighbours it is interpolated linearly, as numpy does by default (R's type 7; Hyndman and Fan,
    "Sample Quantiles in Statistical Packages", 1996). Raises ValueError without values.
    """
    if not values:
        raise ValueError("there is no percentile of nothing")
    ordered = sorted(values)
    position = share * (len(ordered) - 1)
    below, above = math.floor(position), math.ceil(position)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


def median(values: Sequence[float]) -> float:
    """Return the middle value; the mean of the middle two of an even number."""
    return percentile(values, 0.5)


def spread(values: Sequence[float]) -> float:
    """Return how far the middle half of the values lies apart, as a share of their median.

    Of the medians of rounds it is the noise of a measurement: 0 for a quiet machine, and one round that something
    else disturbed does not change it much.
    """
    middle = median(values)
    return (percentile(values, 0.75) - percentile(values, 0.25)) / middle if middle else 0.0


def summary(rounds: Sequence[Sequence[float]]) -> Latencies:
    """Return mean, p50, p95 and p99 of all latencies (in milliseconds), how many there are, and their noise."""
    every = [value for values in rounds for value in values]
    return Latencies(
        mean_ms=round(math.fsum(every) / len(every), 4),
        p50_ms=round(median(every), 4),
        p95_ms=round(percentile(every, 0.95), 4),
        p99_ms=round(percentile(every, 0.99), 4),
        runs=len(every),
        noise=round(spread([median(values) for values in rounds]), 4),
    )


def ratio(rival: Sequence[Sequence[float]], ours: Sequence[Sequence[float]]) -> float:
    """Return how many times longer the rival takes: the median over rounds of the ratio of a round's medians.

    The two ran in turns within each round, so that a machine which slows down for a while slows both.
    """
    pairs = zip(rival, ours, strict=True)
    return round(median([median(theirs) / median(mine) for theirs, mine in pairs]), 4)
