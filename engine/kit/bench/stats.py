"""Statistics of latencies: percentiles, ratios of models that were measured side by side, and confidence intervals."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Self

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
MS_DIGITS = 4
"""Decimal places of times in milliseconds in a report; the last place is a tenth of a microsecond."""
RATIO_DIGITS = 4
"""Decimal places of ratios and shares in a report."""


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


def rounded_interval(values: Sequence[float]) -> Interval:
    """Return the 95 % confidence interval of the median of ratios, one of each round, as a report has it."""
    return rounded(intervals([[value] for value in values])["p50_ms"], RATIO_DIGITS)


def rounded(interval: Interval, digits: int) -> Interval:
    """Return an interval with so many decimal places."""
    return round(interval[0], digits), round(interval[1], digits)


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
    """Return each percentile of all latencies of each draw, interpolated as `percentile` does."""
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


@dataclass(frozen=True)
class Lead:
    """How many times faster a model is than another one, with the 95 % confidence interval."""

    ratio: float
    interval: Interval

    @classmethod
    def of_rounds(cls, faster: Sequence[float]) -> Self:
        """Return the lead from how many times faster the model is in each round."""
        return cls(round(median(faster), RATIO_DIGITS), rounded_interval(faster))

    @property
    def is_sure(self) -> bool:
        """Whether the whole interval is above 1, so that the lead is not within the noise of the measurement."""
        return self.interval[0] > 1

    @property
    def is_surely_slower(self) -> bool:
        """Whether the whole interval is below 1, so that the model is slower beyond the noise."""
        return self.interval[1] < 1

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.ratio:.2f} x [{low:.2f}, {high:.2f}]"
