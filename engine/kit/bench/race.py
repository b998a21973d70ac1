"""Race: contestants that take turns, compared with the first of them, and the report of what they took."""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from engine.kit.bench import early_stop, interleaving, stats
from engine.kit.bench.interleaving import Budget, Clock, Contender, Rounds
from engine.kit.bench.report import BenchRow, Unmeasured
from engine.kit.bench.stats import Lead
from engine.reporting import TypedReport

P50, P95, ROWS_PER_S = "p50_ms", "p95_ms", "rows_per_s"
"""The figures that are compared with those of the baseline."""


@dataclass(frozen=True, kw_only=True)
class RaceRow(BenchRow):
    """What one contestant took at its shape. Latencies are those of one call, while all copies of the model work."""

    rows: int
    """How many rows one call has."""
    instances: int
    """How many copies of the model were called at once."""
    threads: int
    """The number of threads of each copy."""
    rows_per_s: float
    """Rows per second of all copies together."""
    rounds: int
    was_cut: bool = False
    """Whether the contestant was timed no further after `rounds` rounds, because it is too slow."""
    leads: Mapping[str, Lead] = field(default_factory=dict)
    """For `p50_ms`, `p95_ms` and `rows_per_s`: how many times faster than the baseline; empty for the baseline."""


@dataclass(frozen=True, kw_only=True)
class RaceReport(TypedReport):
    """The contestants of a race in the order in which the step has them; the first is the baseline."""

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

    def took(self, figure: str, latencies: Sequence[float]) -> float:
        """Return the seconds that stand for the latencies of a round: of a call, or of a row for `rows_per_s`.

        Each copy of a model is called again as soon as it is done. So by Little's law all copies together answer as
        many calls as there are copies in the mean latency of a call.
        """
        if figure == ROWS_PER_S:
            return math.fsum(latencies) / len(latencies) / (self.rows * self.contender.instances)
        return stats.percentile(latencies, stats.SHARES[figure])


def run(
    entrants: Sequence[Entrant], budget: Budget, *, cut: float | None, by: str = P50, clock: Clock = time.perf_counter
) -> list[tuple[RaceRow, Rounds]]:
    """Return the row of each entrant, and the seconds of its calls; the first entrant is the baseline.

    An entrant that is surely more than `cut` times slower than the baseline, by the figure `by`, is timed no further;
    if nobody else is left, the race ends. Without `cut` all have all rounds.
    """

    def slower(index: int, latencies: Sequence[Rounds], figure: str) -> list[float]:
        rounds = zip(latencies[index], latencies[0], strict=False)  # who is cut has fewer rounds than the baseline
        return [entrants[index].took(figure, own) / entrants[0].took(figure, its) for own, its in rounds]

    def out(latencies: Sequence[Rounds]) -> Collection[int]:
        others = range(1, len(entrants))
        gone = [] if cut is None else [n for n in others if early_stop.is_cut(slower(n, latencies, by), cut)]
        return range(len(entrants)) if gone and len(gone) == len(others) else gone

    measured = interleaving.measure([each.contender for each in entrants], {}, budget, out=out, clock=clock)
    gone = out(measured)
    timed = []
    for index, (entrant, rounds) in enumerate(zip(entrants, measured, strict=True)):
        faster = {figure: [1 / each for each in slower(index, measured, figure)] for figure in (P50, P95, ROWS_PER_S)}
        row = RaceRow.of_rounds(
            [[seconds * 1e3 for seconds in latencies] for latencies in rounds],
            ratios={},
            shape=dict(entrant.shape),
            via=entrant.contender.via,
            runtime=entrant.contender.runtime,
            ours=index == 0,
            graph=entrant.contender.graph,
            rows=entrant.rows,
            instances=entrant.contender.instances,
            threads=entrant.threads,
            rows_per_s=round(1 / entrant.took(ROWS_PER_S, [each for latencies in rounds for each in latencies]), 2),
            rounds=len(rounds),
            was_cut=index > 0 and index in gone,
            leads={figure: Lead.of_rounds(ratios) for figure, ratios in faster.items()} if index else {},
        )
        timed.append((row, rounds))
    return timed
