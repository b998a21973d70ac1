"""Race: contestants that take turns, compared with the first of them, and the report of what they took."""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from engine.kit.bench import interleaving, stats
from engine.kit.bench.interleaving import Budget, Clock, Contender, Rounds
from engine.kit.bench.report import BenchRow, Unmeasured
from engine.kit.bench.stats import Lead
from engine.reporting import TypedReport

P50, P95, ROWS_PER_S = "p50_ms", "p95_ms", "rows_per_s"
"""The figures that are compared with those of the baseline."""
_MARGINS: Mapping[int, float] = {4: 1.25, 7: 1.0}
"""After how many rounds a contestant is looked at -> how many times slower than the cut each round must be."""


@dataclass(frozen=True, kw_only=True)
class RaceRow(BenchRow):
    """What one contestant took at its shape. Latencies are those of one call, while all copies of the model work."""

    rows: int
    """How many rows one call has."""
    instances: int
    """How many copies of the model were called at once."""
    threads: int
    """The number of threads of each copy."""
    rounds: int
    was_cut: bool = False
    """Whether the contestant was timed no further after `rounds` rounds, because it is too slow."""
    leads: Mapping[str, Lead] = field(default_factory=dict)
    """For `p50_ms`, `p95_ms` and `rows_per_s`: how many times faster than the baseline; empty for the baseline."""

    @property
    def rows_per_s(self) -> float:
        """Rows per second of all copies together, as `Entrant.took` explains."""
        return round(1e3 * self.rows * self.instances / self.mean_ms, 2)

    def line(self, beside: Sequence[BenchRow] = ()) -> str:
        cut = f", timed no further after {self.rounds} rounds" if self.was_cut else ""
        return f"{super().line(beside)}, {self.rows_per_s:g} rows/s, p50 lead {self.leads.get(P50, 1)}{cut}"


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

    @property
    def instances(self) -> int:
        """How many copies of the model are called at once."""
        return 1 + len(self.contender.copies)

    def took(self, figure: str, latencies: Sequence[float]) -> float:
        """Return the seconds that stand for the latencies of a round: of a call, or of a row for `rows_per_s`.

        Each copy of a model is called again as soon as it is done. So by Little's law all copies together answer as
        many calls as there are copies in the mean latency of a call.
        """
        if figure == ROWS_PER_S:
            return math.fsum(latencies) / len(latencies) / (self.rows * self.instances)
        return stats.percentile(latencies, stats.SHARES[figure])


def run(
    entrants: Sequence[Entrant], budget: Budget, *, cut: float | None, by: str = P50, clock: Clock = time.perf_counter
) -> list[tuple[RaceRow, Rounds]]:
    """Return the row of each entrant, and the milliseconds of its calls; the first entrant is the baseline.

    An entrant that is surely more than `cut` times slower than the baseline, by the figure `by`, is timed no further;
    if nobody else is left, the race ends. Without `cut` all have all rounds.
    """
    others = range(1, len(entrants))

    def slower(index: int, hot: Sequence[Rounds], figure: str) -> list[float]:
        rounds = zip(hot[index], hot[0], strict=False)  # who is cut has fewer rounds than the baseline
        return [entrants[index].took(figure, own) / entrants[0].took(figure, its) for own, its in rounds]

    def out(hot: Sequence[Rounds]) -> Collection[int]:
        gone = [] if cut is None else [index for index in others if is_cut(slower(index, hot, by), cut)]
        return range(len(entrants)) if gone and len(gone) == len(others) else gone

    timed = interleaving.measure([each.contender for each in entrants], {}, budget, out=out, clock=clock)
    hot = [each.hot for each in timed]
    rows = []
    for index, (entrant, calls) in enumerate(zip(entrants, timed, strict=True)):
        contender = replace(entrant.contender, ours=index == 0)
        bench, raw = interleaving.timed_row(contender, calls, shape=entrant.shape, ratios={})
        faster = {figure: [1 / each for each in slower(index, hot, figure)] for figure in (P50, P95, ROWS_PER_S)}
        row = RaceRow(
            **vars(bench),
            rows=entrant.rows,
            instances=entrant.instances,
            threads=entrant.threads,
            rounds=len(raw),
            was_cut=index in others and index in out(hot),
            leads={figure: Lead.of_rounds(ratios) for figure, ratios in faster.items()} if index else {},
        )
        rows.append((row, raw))
    return rows


def is_cut(slower: Sequence[float], cut: float) -> bool:
    """Tell whether a contestant is cut after the rounds so far.

    `slower` says for each round how many times slower the contestant is than the baseline; it may be `cut` times
    slower. It is cut after 4 rounds if each of them is 25 % above `cut`, and after 7 rounds if each is above `cut`.

    This is a sign test, so it holds for noise of any distribution. Noise makes a round slower or faster equally often:
    a contestant inside the cut has 7 rounds above it with a probability below 1/128, however strong the noise is. A
    contestant 3 % inside is cut after 4 rounds only if noise adds 29 % to each of them, which noise with a standard
    deviation of 40 % does with a probability of 0.5 %. Drift of the machine is no noise here: both models of a round
    have it alike, and the one that comes first changes from round to round.
    """
    margin = _MARGINS.get(len(slower))
    return margin is not None and min(slower) > cut * margin
