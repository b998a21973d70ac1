"""Latency change: the ratio of two measured latencies, and whether it is more than the noise of both."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from engine.kit.bench.report import NOT_COMPARABLE
from engine.store.history import HeadlineFigures, MeasuredLatency


class LatencyVerdict(Enum):
    """What two latencies say about each other."""

    FASTER = "faster"
    SLOWER = "slower"
    WITHIN_NOISE = "within noise"
    """The confidence intervals of both latencies overlap."""
    NOT_COMPARABLE = NOT_COMPARABLE
    """The machine was busy while one of the two was measured."""


@dataclass(frozen=True)
class LatencyChange:
    """Two medians of one shape and way of calling."""

    old: MeasuredLatency
    new: MeasuredLatency

    @property
    def ratio(self) -> float:
        """The new median as a multiple of the old one."""
        return self.new.p50_ms / self.old.p50_ms if self.old.p50_ms else 1.0

    @property
    def band(self) -> tuple[float, float]:
        """The least and the greatest ratio that both confidence intervals allow."""
        (low, high), (old_low, old_high) = self.new.interval, self.old.interval
        return (low / old_high if old_high else 1.0, high / old_low if old_low else 1.0)

    @property
    def verdict(self) -> LatencyVerdict:
        """The verdict: faster or slower only if the two confidence intervals have no value in common."""
        if self.old.busy or self.new.busy:
            return LatencyVerdict.NOT_COMPARABLE
        low, high = self.band
        if low <= 1 <= high:
            return LatencyVerdict.WITHIN_NOISE
        return LatencyVerdict.FASTER if high < 1 else LatencyVerdict.SLOWER

    def in_words(self) -> str:
        """Return the change in percent with its band: "-12.4% (-15.0 to -9.1%)", or why there is none."""
        if self.verdict is LatencyVerdict.NOT_COMPARABLE:
            return NOT_COMPARABLE
        low, high = self.band
        band = f"{low - 1:+.1%} to {high - 1:+.1%}"
        if self.verdict is LatencyVerdict.WITHIN_NOISE:
            return f"within noise ({band})"
        return f"{self.ratio - 1:+.1%} ({band})"


def of_all(old: HeadlineFigures, new: HeadlineFigures) -> list[LatencyChange]:
    """Return the change of each latency that both builds have, in the order of the new build."""
    pairs = ((old.latency(each.place), each) for each in new.latencies)
    return [LatencyChange(before, after) for before, after in pairs if before is not None]
