"""Race: contestants that take turns, compared with the first of them, and the report of what they took."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

from engine.kit.bench import early_stop, interleaving, stats
from engine.kit.bench.interleaving import Budget, Clock, Contender, Rounds
from engine.kit.bench.report import Unmeasured, in_words
from engine.kit.bench.stats import Interval, Lead
from engine.reporting import TypedReport

P50, P95, ROWS_PER_S = "p50_ms", "p95_ms", "rows_per_s"
"""The figures that are compared with those of the baseline."""


@dataclass(frozen=True, kw_only=True)
class RaceRow:
    """What one contestant took at its shape. The times are those of one call, while all copies of the model work."""

    runtime: str
    shape: Mapping[str, int]
    rows: int
    """How many rows one call has."""
    instances: int
    """How many copies of the model were called at once."""
    threads: int
    """The number of threads of each copy."""
    in_graph: bool = False
    """Whether the calls replayed a CUDA graph."""
    p50_ms: float
    p95_ms: float
    p99_ms: float
    rows_per_s: float
    """Rows per second of all copies together."""
    intervals: Mapping[str, Interval]
    """The 95 % confidence interval of `mean_ms`, `p50_ms`, `p95_ms` and `p99_ms`."""
    rounds: int
    was_cut: bool = False
    """Whether the contestant was timed no further after `rounds` rounds, because it is too slow."""
    leads: Mapping[str, Lead] = field(default_factory=dict)
    """For `p50_ms`, `p95_ms` and `rows_per_s`: how many times faster the contestant is than the baseline."""

    def __str__(self) -> str:
        copies = f", {self.instances} copies at once" if self.instances > 1 else ""
        leads = f", {self.leads[P50]} as fast as the baseline" if self.leads else ""
        cut = f", timed no further after {self.rounds} rounds" if self.was_cut else ""
        took = f"p50 {self.p50_ms:.3f} ms, p95 {self.p95_ms:.3f} ms, {self.rows_per_s:.1f} rows/s"
        return f"{self.runtime} at {in_words(self.shape)}{copies}: {took}{leads}{cut}"


@dataclass(frozen=True, kw_only=True)
class RaceReport(TypedReport):
    """The contestants of a race, in the order in which the step has them; the first is the baseline."""

    version: ClassVar[int] = 1

    cpu: str
    gpu: str = ""
    """The GPU that ran the models; empty where the CPU ran them."""
    rows: tuple[RaceRow | Unmeasured, ...]
    """What each contestant took, or why it cannot run."""


@dataclass(frozen=True, kw_only=True)
class Entrant:
    """A contestant that is ready to run."""

    contender: Contender
    shape: Mapping[str, int]
    rows: int
    threads: int

    @property
    def instances(self) -> int:
        """How many copies of the model are called at once."""
        return 1 + len(self.contender.copies)

    def per_row(self, latencies: Sequence[float]) -> float:
        """Return the seconds for which all copies together work on one row.

        Each copy is called again as soon as it is done, so by Little's law the copies together answer `instances` calls
        in the mean latency of a call.
        """
        return math.fsum(latencies) / len(latencies) / (self.rows * self.instances)

    def slower(self, figure: str, own: Rounds, baseline: Entrant, its: Rounds) -> list[float]:
        """Return for each of its own rounds how many times slower the entrant is than the baseline, by a figure."""
        mine, theirs = _STATISTICS[figure](self), _STATISTICS[figure](baseline)
        return [mine(ours) / theirs(other) for ours, other in zip(own, its, strict=False)]  # who is cut has fewer


_STATISTICS: Mapping[str, Callable[[Entrant], Callable[[Sequence[float]], float]]] = {
    P50: lambda _: stats.median,
    P95: lambda _: partial(stats.percentile, share=0.95),
    ROWS_PER_S: lambda entrant: entrant.per_row,
}
"""For each figure, the seconds that stand for the latencies of a round."""


def run(
    entrants: Sequence[Entrant],
    budget: Budget,
    *,
    cut: float | None,
    by: str = P50,
    clock: Clock = time.perf_counter,
) -> list[tuple[RaceRow, Rounds]]:
    """Return the row of each entrant, and the seconds of its calls; the first entrant is the baseline.

    An entrant that is surely more than `cut` times slower than the baseline, by the figure `by`, is timed no further;
    if nobody else is left, the race ends. Without `cut` all have all rounds.
    """
    baseline, *others = entrants

    def is_cut(entrant: Entrant, own: Rounds, its: Rounds) -> bool:
        return cut is not None and early_stop.is_cut(entrant.slower(by, own, baseline, its), cut)

    def out(latencies: Sequence[Rounds]) -> Collection[int]:
        its = latencies[0]
        gone = [index for index, each in enumerate(others, 1) if is_cut(each, latencies[index], its)]
        return range(len(entrants)) if others and len(gone) == len(others) else gone

    measured = interleaving.measure([each.contender for each in entrants], {}, budget, out=out, clock=clock)
    its = measured[0]
    return [
        (_row(each, own, baseline, its, was_cut=each is not baseline and is_cut(each, own, its)), own)
        for each, own in zip(entrants, measured, strict=True)
    ]


def _row(entrant: Entrant, own: Rounds, baseline: Entrant, its: Rounds, *, was_cut: bool) -> RaceRow:
    every = [seconds * 1e3 for latencies in own for seconds in latencies]
    shares = {name: round(stats.percentile(every, share), stats.MS_DIGITS) for name, share in stats.SHARES.items()}
    intervals = stats.intervals([[seconds * 1e3 for seconds in latencies] for latencies in own])
    return RaceRow(
        runtime=entrant.contender.runtime,
        shape=dict(entrant.shape),
        rows=entrant.rows,
        instances=entrant.instances,
        threads=entrant.threads,
        in_graph=entrant.contender.graph is not None,
        **shares,
        rows_per_s=round(1e3 / entrant.per_row(every), 2),
        intervals={name: stats.rounded(each, stats.MS_DIGITS) for name, each in intervals.items()},
        rounds=len(own),
        was_cut=was_cut,
        leads={}
        if entrant is baseline
        else {
            figure: Lead.of_rounds([1 / each for each in entrant.slower(figure, own, baseline, its)])
            for figure in _STATISTICS
        },
    )
