"""Search: trials in a repeatable order until the budget is spent, a last race of the best, and the choice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from engine.errors import HardwareError, JudgementError
from engine.kit.bench.race import P50, P95, ROWS_PER_S, RaceRow
from engine.recipe.tune import SIZE, THROUGHPUT
from engine.tuning.proposals import Proposals
from engine.tuning.result import ENOUGH_SAMPLES, TrialRow, TuneResult, front

if TYPE_CHECKING:
    from engine.kit.accuracy.report import AccuracyReport
    from engine.kit.bench.report import Unmeasured
    from engine.store.record import Record
    from engine.tuning.objective import Objective
    from engine.tuning.racing import Raced
    from engine.tuning.space import Space
    from engine.tuning.trials import BuiltTrial, Point

CUT = 1.25
"""A trial that is surely so many times slower than the baseline is timed no further."""
_FINALISTS = 4
_KEPT = ("validated", "cut")
"""The states of trials that keep all bounds."""
_SAMPLES = ("sample", "tensors")
"""The kinds of cases that are samples of the user's; others are made of these, or of random numbers."""
_REFUSED, _FAILED, _MISSED = 1e9, 1e8, 1e6
"""The costs of points without a figure; a missed bound costs more, the further it is missed."""
_MOST_REFUSED = 1000
"""A search ends after so many points in turn that the target cannot have."""


class Building(Protocol):
    """What a search needs of `engine.tuning.racing.Races`."""

    def build(self, point: Point) -> BuiltTrial:
        """Build a trial up to its validation."""

    def race(self, points: Sequence[Point], *, sizes: Mapping[str, int], by: str, cut: float | None) -> Raced:
        """Time the models of points in turns; the first is the baseline."""


@dataclass
class Search:
    """A search; `rows` are its trials so far."""

    recipe: str
    """The name of the recipe."""
    trials: Building
    space: Space
    objective: Objective
    most: int | None
    """The most trials."""
    budget: float | None
    """The seconds of jobs after which no further trial begins."""
    on_row: Callable[[TrialRow], None] = lambda _: None
    rows: list[TrialRow] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    _counted: set[str] = field(default_factory=set)

    def run(self) -> TuneResult:
        """Search, and return the result. Raises UserError where the recipe as it is written cannot be built here."""
        proposals = Proposals(self.space)
        in_turn = 0
        for point, choices in proposals:
            if self._is_spent() or in_turn >= _MOST_REFUSED:
                break
            built = self.trials.build(point)
            if built.waits_for is not None:
                raise HardwareError(f"the trials of this search wait for {built.waits_for}", hint="search there")
            if built.variant is None and built.error is not None:
                if not point:
                    raise built.error  # the recipe as it is written is wrong
                self.refused[str(dict(point))] = built.error.what
                proposals.tell(choices, _REFUSED)
                in_turn += 1
                continue
            in_turn = 0
            row = self._timed(self._row(built))
            self.rows.append(row)
            proposals.tell(choices, self._cost_of(row))
            self.on_row(row)
        return self.result(self._finals())

    def result(self, finals: Sequence[TrialRow] = ()) -> TuneResult:
        """Return the result so far; without the last race, nothing is chosen."""
        chosen, why = self._choice(finals) if finals else (None, "")
        fewest = min((row.samples for row in self.rows if row.accuracies), default=ENOUGH_SAMPLES)
        few = f"validated on {fewest} samples: with fewer than {ENOUGH_SAMPLES}, they say little about other inputs"
        return TuneResult(
            recipe=self.recipe,
            objective=self.objective.in_words(),
            bounds=self.objective.bounds_in_words(),
            trials=tuple(self.rows),
            front=front(self.rows),
            refused=self.refused,
            finals=tuple(finals),
            chosen=chosen,
            why=why,
            seconds=round(self.seconds, 3),
            notes=(few,) if fewest < ENOUGH_SAMPLES else (),
        )

    def _is_spent(self) -> bool:
        no_trial_left = self.most is not None and len(self.rows) >= self.most
        return no_trial_left or (self.budget is not None and self.seconds >= self.budget)

    def _row(self, built: BuiltTrial) -> TrialRow:
        """Return the row of a trial that is not timed yet."""
        accuracy, error = built.accuracy, built.error
        cosine = None if accuracy is None else accuracy.cosine
        return TrialRow(
            number=len(self.rows) + 1,
            point=built.point,
            state="validated" if error is None else "missed" if isinstance(error, JudgementError) else "failed",
            why="" if error is None else error.what,
            accuracies={} if accuracy is None else _accuracies(accuracy),
            mean_cosine=None if cosine is None else cosine.mean,
            samples=0 if accuracy is None else sum(accuracy.kinds.get(kind, 0) for kind in _SAMPLES),
            size=built.size,
            seconds=self._count(built.records.values()),
        )

    def _timed(self, row: TrialRow) -> TrialRow:
        """Return the row of a trial, timed in turns with the first trial that kept its accuracy, if it did so, too."""
        if row.state != "validated":
            return row
        baseline = next((each for each in self.rows if each.figures), None)
        cut = None if self.objective.figure == SIZE else CUT  # a small model may be slow
        timed = self._race([row] if baseline is None else [baseline, row], cut=cut)[-1]
        over = {} if timed.state == "failed" else self.objective.over(timed)
        why = ", ".join(f"{name} is {share:.0%} over its bound" for name, share in over.items())
        return replace(timed, state="missed", why=why) if over else timed

    def _race(self, rows: Sequence[TrialRow], *, cut: float | None) -> list[TrialRow]:
        """Return the rows with the figures of one race, of which the first row is the baseline.

        The last row has the seconds of the race. Raises UserError for a race without a report.
        """
        by = {THROUGHPUT: ROWS_PER_S, SIZE: P50}.get(self.objective.figure, self.objective.figure)
        raced = self.trials.race([row.point for row in rows], sizes=self.objective.sizes, by=by, cut=cut)
        if raced.report is None or raced.record is None:
            why = "" if raced.error is None else raced.error.what
            return [replace(row, state="failed", why=why, cost=None) for row in rows]
        timed = [self._with_figures(row, each, by, rows[0]) for row, each in zip(rows, raced.report.rows, strict=True)]
        return [*timed[:-1], replace(timed[-1], seconds=timed[-1].seconds + self._count([raced.record]))]

    def _with_figures(self, row: TrialRow, raced: RaceRow | Unmeasured, by: str, baseline: TrialRow) -> TrialRow:
        if not isinstance(raced, RaceRow):
            return replace(row, state="failed", why=raced.reason, cost=None)
        lead = raced.leads.get(by)
        ratio = 1.0 if lead is None else lead.ratio
        times = {P50: raced.p50_ms, P95: raced.p95_ms, "p99_ms": raced.p99_ms, THROUGHPUT: raced.rows_per_s}
        return replace(
            row,
            state="cut" if raced.was_cut else "validated",
            figures=times,
            lead=ratio,
            interval=None if lead is None else lead.interval,
            cost=(row.size or 0) / (baseline.size or 1) if self.objective.figure == SIZE else 1 / ratio,
        )

    def _count(self, records: Iterable[Record]) -> float:
        """Return the seconds of jobs by their records, of which each counts once in a search."""
        fresh = {str(each.digest): each.seconds for each in records if str(each.digest) not in self._counted}
        self._counted.update(fresh)
        self.seconds += sum(fresh.values())
        return round(sum(fresh.values()), 3)

    def _cost_of(self, row: TrialRow) -> float:
        """Return the cost that the sampler is told: a trial that keeps all bounds is better than any other one."""
        if row.state == "failed":
            return _FAILED
        over = sum(self.objective.over(row).values()) if row.figures else row.loss
        return _MISSED * (1 + over) if row.state == "missed" or row.cost is None else row.cost

    def _finals(self) -> list[TrialRow]:
        """Time the best trials once more, all rounds, in turns with the recipe as it is written or else the best."""
        kept = [row for row in self.rows if row.state in _KEPT and row.cost is not None]
        best = sorted(kept, key=lambda row: (row.cost or 0.0, row.number))[:_FINALISTS]
        written = [row for row in kept if not row.point]
        finalists = [*written, *(row for row in best if row.point)]
        return finalists if len(finalists) < 2 else self._race(finalists, cut=None)  # noqa: PLR2004  one has no rival

    def _choice(self, finals: Sequence[TrialRow]) -> tuple[int | None, str]:
        """Return the number of the chosen trial, and why: the recipe as it is written stays unless one surely leads."""
        kept = [row for row in finals if row.state in _KEPT and not self.objective.over(row)]
        best = min(kept, key=lambda row: (row.cost or 0.0, row.number), default=None)
        if best is None:
            return None, "no trial kept the bounds in the last race"
        if finals[0].point or finals[0] not in kept:
            return best.number, "the recipe as it is written does not keep the bounds, and this is the best that does"
        if not best.point:
            return best.number, "no other trial is better than the recipe as it is written"
        if self.objective.figure == SIZE:
            return best.number, f"its model has {best.cost:.0%} of the size of the recipe as it is written"
        if best.interval is None or best.interval[0] <= 1:
            noise = f"the best other trial, {best.name}, leads by no more than the noise ({best.lead_in_words})"
            return finals[0].number, f"{noise}, so the recipe as it is written stays"
        return best.number, f"it is {best.lead_in_words} as fast as the recipe as it is written, in turns with it"


def _accuracies(report: AccuracyReport) -> dict[str, float]:
    """Return the accuracies on which a search can have bounds, by the names of the bounds."""
    measured = {
        "cosine": None if report.cosine is None else report.cosine.worst,
        "agreement": None if report.agreement is None else report.agreement.share,
        "rank": None if report.rank is None else report.rank.worst,
        "metric": None if report.metric is None else report.metric.value,
    }
    return {name: value for name, value in measured.items() if value is not None}
