"""Confidence intervals of latencies: how far a statistic may move if the same measurement is made again."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING

from engine.kit.bench import stats

if TYPE_CHECKING:
    import numpy as np

SHARES: Mapping[str, float] = {"p50_ms": 0.5, "p95_ms": 0.95, "p99_ms": 0.99}
"""The percentiles of a bench report, by the name of their field."""
LEVEL = 0.95
"""The confidence level of all intervals."""
_RESAMPLES = 1000
_LEAST_ROUNDS = 3
"""With fewer rounds, an interval reaches from the smallest latency to the largest."""

Interval = tuple[float, float]


def intervals(rounds: Sequence[Sequence[float]]) -> dict[str, Interval]:
    """Return the 95 % confidence interval of the mean and of each percentile of latencies, by the name of the field.

    The intervals are percentile bootstraps over rounds (Efron, "Bootstrap Methods", 1979): of 1000 draws of as many
    rounds with replacement, the interval holds the middle 95 % of the statistics. Whole rounds are drawn, because the
    calls of a round share the disturbances of the machine. The draws are the same for the same number of rounds, so
    equal latencies have equal intervals.
    """
    if len(rounds) < _LEAST_ROUNDS:
        ends = (min(chain.from_iterable(rounds)), max(chain.from_iterable(rounds)))
        return dict.fromkeys(("mean_ms", *SHARES), ends)
    import numpy as np

    counts = _counts(len(rounds))
    totals = np.array([sum(values) for values in rounds])
    runs = np.array([len(values) for values in rounds])
    statistics = {"mean_ms": (counts @ totals) / (counts @ runs), **_percentiles(rounds, counts)}
    return {name: _middle(values) for name, values in statistics.items()}


def interval(values: Sequence[float]) -> Interval:
    """Return the 95 % confidence interval of the median of values, of which each round gave one."""
    return intervals([[value] for value in values])["p50_ms"]


def rounded_interval(values: Sequence[float]) -> Interval:
    """Return the 95 % confidence interval of the median of ratios, with the decimal places of a report."""
    low, high = interval(values)
    return round(low, stats.RATIO_DIGITS), round(high, stats.RATIO_DIGITS)


@cache
def _counts(rounds: int) -> np.ndarray:
    """Return how often each draw holds each round: an array of draws by rounds."""
    import numpy as np

    generator = random.Random(rounds)  # noqa: S311  repeatable draws are meant
    counts = np.zeros((_RESAMPLES, rounds), dtype=np.int64)
    for row in counts:
        for index in generator.choices(range(rounds), k=rounds):
            row[index] += 1
    return counts


def _percentiles(rounds: Sequence[Sequence[float]], counts: np.ndarray) -> dict[str, np.ndarray]:
    """Return each percentile of all latencies of each draw, interpolated as `stats.percentile` does."""
    import numpy as np

    values = np.fromiter(chain.from_iterable(rounds), dtype=np.float64)
    owners = np.repeat(np.arange(len(rounds)), [len(each) for each in rounds])
    order = np.argsort(values, kind="stable")
    ordered, last = values[order], np.cumsum(counts[:, owners[order]], axis=1)

    def at(place: np.ndarray) -> np.ndarray:
        """Return the value at a place of each draw's sorted latencies, counted from 0."""
        chosen: np.ndarray = ordered[np.argmax(last > place[:, None], axis=1)]
        return chosen

    percentiles = {}
    for name, share in SHARES.items():
        position = share * (last[:, -1] - 1)
        below = np.floor(position)
        lower, upper = at(below), at(np.ceil(position))
        percentiles[name] = lower + (upper - lower) * (position - below)
    return percentiles


def _middle(values: np.ndarray) -> Interval:
    import numpy as np

    rest = (1 - LEVEL) / 2
    low, high = np.quantile(values, [rest, 1 - rest])
    return float(low), float(high)
