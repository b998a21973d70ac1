"""Search: trials in a repeatable order until the budget is spent, a last race of the best, and the choice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from engine.errors import HardwareError, JudgementError, UserError
from engine.kit.bench import race as races
from engine.recipe.tune import SIZE, THROUGHPUT
from engine.tuning.proposals import Proposals
from engine.tuning.result import ENOUGH_TEXTS, TrialRow, TuneResult, front

if TYPE_CHECKING:
    from engine.kit.accuracy.report import AccuracyReport
    from engine.kit.bench.race import RaceReport
    from engine.kit.bench.report import Unmeasured
    from engine.store.record import Record
    from engine.tuning.objective import Objective
    from engine.tuning.space import Choices, Space
    from engine.tuning.trials import BuiltTrial, Point

CUT = 1.25
"""A trial that is surely so many times slower than the baseline is timed no further."""
_FINALISTS = 4
_REFUSED, _FAILED, _MISSED = 1e9, 1e8, 1e6
"""The costs of points without a figure; a missed bound costs more, the further it is missed."""
_MOST_REFUSED = 1000
"""A search ends after so many points in turn that the target cannot have."""


class Building(Protocol):
    """What a search needs of `engine.tuning.trials.Trials`."""

    def build(self, point: Point) -> BuiltTrial:
        """Build a trial up to its validation."""

    def race(self, points: Sequence[Point], *, sizes: Mapping[str, int], by: str, cut: float | None) -> Raced:
        """Time the models of points in turns; the first is the baseline."""


@dataclass
class Search:
    """A search; `rows` are its trials so far."""

    trials: Building
    space: Space
    objective: Objective
    most: int | None
    """The most trials."""
    budget: float | None
    """The seconds of jobs after which no further trial begins."""
    recipe: str = ""
    """The name of the recipe."""
    on_row: Callable[[TrialRow], None] = lambda _: None
    rows: list[TrialRow] = field(default_factory=list)
    refused: dict[str, UserError] = field(default_factory=dict)
    """The points that the target cannot have, with the reasons."""
    seconds: float = 0.0
    _counted: set[str] = field(default_factory=set)

    def run(self) -> TuneResult:
        """Search, and return the result. Raises UserError where the recipe as it is written cannot be built here."""
        proposals = Proposals(self.space)
        in_turn = 0
        for point, choices in proposals:
            if self._is_spent() or in_turn >= _MOST_REFUSED:
                break
            outcome = self.trials.build(point)
            if outcome.waits_for is not None:
                raise HardwareError(f"the trials of this search wait for {outcome.waits_for}", hint="run it there")
            if outcome.variant is None:
                self._refuse(point, outcome, proposals, choices)
                in_turn += 1
                continue
            in_turn = 0
            row = self._measured(outcome)
            self.rows.append(row)
            proposals.tell(choices, self._cost(row))
            self.on_row(row)
        return self.result(self._finals())

    def result(self, finals: Sequence[TrialRow] = ()) -> TuneResult:
        """Return the result so far; without the last race, nothing is chosen."""
        chosen, why = self._choice(finals) if finals else (None, "")
        fewest = min((row.samples for row in self.rows if row.samples), default=0)
        few = f"validated on {fewest} samples: with fewer than {ENOUGH_TEXTS}, the accuracy says little about others"
        return TuneResult(
            recipe=self.recipe,
            objective=self.objective.in_words(),
            bounds=self.objective.bounds_in_words(),
            trials=tuple(self.rows),
            front=front(self.rows),
            refused=len(self.refused),
            finals=tuple(finals),
            chosen=chosen,
            why=why,
            seconds=round(self.seconds, 3),
            notes=(few,) if 0 < fewest < ENOUGH_TEXTS else (),
        )

    def _is_spent(self) -> bool:
        no_trials = self.most is not None and len(self.rows) >= self.most
        return no_trials or (self.budget is not None and self.seconds >= self.budget)

    def _refuse(self, point: Point, outcome: BuiltTrial, proposals: Proposals, choices: Choices | None) -> None:
        if not point and outcome.error is not None:
            raise outcome.error  # the recipe as it is written is wrong
        if outcome.error is not None:
            self.refused[str(dict(point))] = outcome.error
        proposals.tell(choices, _REFUSED)

    @property
    def baseline(self) -> TrialRow | None:
        """The first trial that was built and kept its accuracy: all others are timed in turns with it."""
        return next((row for row in self.rows if row.figures), None)

    def _measured(self, outcome: BuiltTrial) -> TrialRow:
        """Return the row of a trial, timed in turns with the baseline if its model is valid."""
        accuracy, error = outcome.accuracy, outcome.error
        row = TrialRow(
            number=len(self.rows) + 1,
            point=outcome.point,
            state="validated" if error is None else "missed" if isinstance(error, JudgementError) else "failed",
            why="" if error is None else error.what,
            accuracies={} if accuracy is None else _accuracies(accuracy),
            mean_cosine=None if accuracy is None or accuracy.cosine is None else accuracy.cosine.mean,
            samples=0 if accuracy is None else accuracy.cases,
            size=outcome.size,
            seconds=self._count(outcome.records.values()),
        )
        if error is not None:
            return row
        first = self.baseline
        timed = self._race([row] if first is None else [first, row], cut=CUT)[-1]
        missed = self.objective.missed(timed)
        if timed.state != "failed" and missed:
            why = ", ".join(f"{name} is {share:.0%} over its bound" for name, share in missed.items())
            return replace(timed, state="missed", why=why)
        return timed

    def _race(self, rows: Sequence[TrialRow], *, cut: float | None) -> list[TrialRow]:
        """Return the rows with the figures of one race, of which the first row is the baseline."""
        raced = self.trials.race(
            [row.point for row in rows], sizes=self.objective.sizes, by=_figure(self.objective), cut=cut
        )
        if raced.report is None:
            why = "" if raced.error is None else raced.error.what
            return [replace(row, state="failed", why=why) for row in rows]
        spent = 0.0 if raced.record is None else self._count([raced.record])
        timed = [self._timed(row, each) for row, each in zip(rows, raced.report.rows, strict=True)]
        costs = [self.objective.cost(row, timed[0]) for row in timed]
        rows = [replace(row, cost=cost) for row, cost in zip(timed, costs, strict=True)]
        return [*rows[:-1], replace(rows[-1], seconds=rows[-1].seconds + spent)]

    def _timed(self, row: TrialRow, raced: object) -> TrialRow:
        """Return a row with the figures of its contestant in a race."""
        if not isinstance(raced, races.RaceRow):
            return replace(row, state="failed", why=getattr(raced, "reason", ""))
        lead = raced.leads.get(_figure(self.objective))
        return replace(
            row,
            state="cut" if raced.was_cut else row.state,
            figures={
                "p50_ms": raced.p50_ms, "p95_ms": raced.p95_ms, "p99_ms": raced.p99_ms, THROUGHPUT: raced.rows_per_s
            },
            lead=1.0 if lead is None else lead.ratio,
            interval=None if lead is None else lead.interval,
        )  # fmt: skip

    def _count(self, records: Iterable[Record]) -> float:
        """Return the seconds of jobs by their records, of which each counts once in a search."""
        fresh = {str(each.digest): each.seconds for each in records if str(each.digest) not in self._counted}
        self._counted.update(fresh)
        self.seconds += sum(fresh.values())
        return round(sum(fresh.values()), 3)

    def _cost(self, row: TrialRow) -> float:
        """Return what the sampler is told: the smaller, the better, and any trial that keeps all bounds before others."""
        if row.state == "failed":
            return _FAILED
        over = sum(self.objective.missed(row).values()) if row.figures else (row.loss or 1.0)
        return _MISSED * (1 + over) if row.state == "missed" or row.cost is None else row.cost

    def _finals(self) -> list[TrialRow]:
        """Time the best trials once more, all rounds, with the recipe as it is written or else the best as baseline."""
        feasible = [row for row in self.rows if row.state == "validated" and row.cost is not None]
        best = sorted(feasible, key=lambda row: (row.cost or 0.0, row.number))[:_FINALISTS]
        if not best:
            return []
        default = next((row for row in feasible if not row.point), None)
        contestants = best if default is None else [default, *(row for row in best if row is not default)]
        return contestants if len(contestants) == 1 else self._race(contestants, cut=None)

    def _choice(self, finals: Sequence[TrialRow]) -> tuple[int | None, str]:
        """Return the number of the chosen trial, and why: the recipe as it is written stays unless one surely leads."""
        kept = [row for row in finals if row.cost is not None and not self.objective.missed(row)]
        first = finals[0]
        if not kept:
            return None, "no finalist kept the limits in the last race"
        best = min(kept, key=lambda row: (row.cost or 0.0, row.number))
        if first.point or first not in kept:
            return best.number, "the recipe as it is written does not keep the bounds; this is the best that does"
        if best is first:
            return first.number, "no other point is better than the recipe as it is written"
        if self.objective.figure != SIZE and (best.interval is None or best.interval[0] <= 1):
            what = f"the best other point ({best.name}) leads by no more than the noise, {lead_in_words(best)}"
            return first.number, f"{what}: the recipe as it is written stays"
        if self.objective.figure == SIZE:
            return best.number, f"its model has {best.cost:.0%} of the size of the recipe as it is written"
        return best.number, f"it is {lead_in_words(best)} as fast as the recipe as it is written, in turns with it"


def lead_in_words(row: TrialRow) -> str:
    """Return the lead of a trial with its interval: "1.31 x [1.28, 1.34]"."""
    interval = "" if row.interval is None else f" [{row.interval[0]:.2f}, {row.interval[1]:.2f}]"
    return f"{row.lead or 1:.2f} x{interval}"


def _figure(objective: Objective) -> str:
    """Return the figure of a race that decides: throughput, or p50, or p95, which also stands for p99."""
    by = {THROUGHPUT: races.ROWS_PER_S, SIZE: races.P50, races.P50: races.P50}
    return by.get(objective.figure, races.P95)


def _accuracies(report: AccuracyReport) -> dict[str, float]:
    """Return the accuracies on which a search can have bounds, by the names of the bounds."""
    measured = {
        "cosine": report.cosine and report.cosine.worst,
        "agreement": report.agreement and report.agreement.share,
        "rank": report.rank and report.rank.worst,
        "metric": report.metric and report.metric.value,
    }
    return {name: value for name, value in measured.items() if value is not None}
