"""Search: trials in a repeatable order until the budget is spent, a last race of the best, and the choice."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from engine.errors import JudgementError, UsageError
from engine.kit.bench.race import P50, P95, ROWS_PER_S, RaceRow
from engine.recipe.tune import SIZE, THROUGHPUT
from engine.tuning.proposals import Proposals
from engine.tuning.result import ENOUGH_SAMPLES, TrialRow, TuneResult, front

if TYPE_CHECKING:
    from engine.kit.accuracy.report import AccuracyReport
    from engine.kit.bench.report import Unmeasured
    from engine.store.record import Record
    from engine.tuning.objective import Objective
    from engine.tuning.space import Space
    from engine.tuning.trials import BuiltTrial, TrialBuilder

CUT = 1.25
"""A trial that is surely so many times slower than the baseline is timed no further."""
_FINALISTS = 4
_KEPT = ("validated", "cut")  # the states of trials that keep all bounds
_SAMPLES = ("sample", "tensors")  # the kinds of cases that are the user's own
_MISSED = 1e15
"""The cost of a missed bound, to which is added how far it is missed: above the bytes of any model."""
_MOST_REFUSED = 1000  # points that are no trials, after which a search ends


@dataclass
class Search:
    """A search; `rows` are its trials so far."""

    recipe: str
    trials: TrialBuilder
    space: Space
    objective: Objective
    most: float
    """The most trials."""
    budget: float
    """The seconds of jobs after which no further trial begins."""
    on_row: Callable[[TrialRow], None] = lambda _: None
    rows: list[TrialRow] = field(default_factory=list)
    refused: list[Mapping[str, Any]] = field(default_factory=list)
    seconds: float = 0.0
    _same: dict[str | None, TrialRow] = field(default_factory=dict)
    _counted: set[str] = field(default_factory=set)

    def run(self) -> TuneResult:
        """Search, and return the result. Raises UsageError for a bound that cannot be measured."""
        proposals = Proposals(self.space)
        for point, choices in proposals:
            if len(self.rows) >= self.most or self.seconds >= self.budget or len(self.refused) >= _MOST_REFUSED:
                break
            built = self.trials.build(point)
            row, ident = self._row(built), self.trials.ident(built, self.objective.sizes)
            same = row if ident is None else self._same.setdefault(ident, row)
            if built.variant is None or same is not row:
                why = row.why if same is row else f"it gives the same model as trial {same.number}"
                self.refused.append({"point": point, "why": why})
                proposals.tell(choices, math.inf if same is row else self._cost(self.rows[same.number - 1]))
                continue
            if not self.rows and row.accuracies and (lacks := self.objective.accuracy.keys() - row.accuracies.keys()):
                raise UsageError(f"`tune.subject_to` bounds {min(lacks)}, which could not be measured", [row.why])
            if row.state == "validated":
                [*_, row] = self._race([*self._baseline, row], cut=None if self.objective.figure == SIZE else CUT)
            self.rows.append(row)
            proposals.tell(choices, self._cost(row))
            self.on_row(row)
        return self.result(self._finals())

    def result(self, finals: Sequence[TrialRow] = (), *, interrupted: bool = False) -> TuneResult:
        """Return the result so far; without the last race, nothing is chosen. Its figures replace earlier ones."""
        chosen, why = self._choice(finals) if finals else (None, "")
        number = None if chosen is None else chosen.number
        raced = {row.number: row for row in finals}
        rows = [raced.get(row.number, row) for row in self.rows]
        least = self.objective.accuracy.get("cosine")
        notes = [chosen.of_others(least)] if chosen is not None and least is not None and chosen.samples else []
        if len(rows) == len(finals) == 1 < self.most and self.seconds < self.budget:
            notes.append("nothing was left to search but the recipe as it is written")
        fewest = min((row.samples for row in self.rows if row.accuracies), default=ENOUGH_SAMPLES)
        if fewest < ENOUGH_SAMPLES:
            notes.append(f"validated on {fewest} samples: fewer than {ENOUGH_SAMPLES} say little about other inputs")
        return TuneResult(
            recipe=self.recipe,
            objective=str(self.objective),
            bounds=", ".join(f"{name} {bound}" for name, bound in self.objective.bounds.items()) or "no bounds",
            trials=tuple(rows),
            front=front(rows, number),
            refused=tuple(self.refused),
            finals=tuple(raced),
            chosen=number,
            why=why,
            seconds=round(self.seconds, 3),
            notes=tuple(notes),
            interrupted=interrupted,
        )

    @property
    def _baseline(self) -> list[TrialRow]:
        """The first trial that was timed, with which all others are compared."""
        return [row for row in self.rows if row.figures][:1]

    def _row(self, built: BuiltTrial) -> TrialRow:
        """Return the row of a trial that is not timed yet."""
        accuracy, error = built.accuracy, built.error
        cosine = None if accuracy is None else accuracy.cosine
        return TrialRow(
            number=len(self.rows) + 1,
            point=built.point,
            state="validated" if error is None else "missed" if isinstance(error, JudgementError) else "failed",
            why="" if error is None else "; ".join([error.what, *error.facts[:1]]),
            accuracies={} if accuracy is None else _accuracies(accuracy),
            mean_cosine=None if cosine is None else cosine.mean,
            samples=0 if accuracy is None else sum(accuracy.kinds.get(kind, 0) for kind in _SAMPLES),
            size=built.size,
            seconds=self._count(built.records.values()),
        )

    def _race(self, rows: Sequence[TrialRow], *, cut: float | None) -> list[TrialRow]:
        """Return the rows with the figures of one race with the first row; the last row has the seconds of the race."""
        by = {THROUGHPUT: ROWS_PER_S, SIZE: P50}.get(self.objective.figure, self.objective.figure)
        raced = self.trials.race([row.point for row in rows], sizes=self.objective.sizes, by=by, cut=cut)
        if raced.report is None or raced.record is None:
            why = "the race was not run" if raced.error is None else raced.error.what
            return [replace(row, state="failed", why=why) for row in rows]
        timed = [self._with_figures(row, each, by) for row, each in zip(rows, raced.report.rows, strict=True)]
        return [*timed[:-1], replace(timed[-1], seconds=timed[-1].seconds + self._count([raced.record]))]

    def _with_figures(self, row: TrialRow, raced: RaceRow | Unmeasured, by: str) -> TrialRow:
        """Return a row with its figures of a race, judged by the limits."""
        if not isinstance(raced, RaceRow):
            return replace(row, state="failed", why=raced.reason)
        times = {P50: raced.p50_ms, P95: raced.p95_ms, "p99_ms": raced.p99_ms, THROUGHPUT: raced.rows_per_s}
        lead = raced.leads.get(by)
        ratio, interval = (1.0, None) if lead is None else (lead.ratio, lead.interval)
        state: Literal["cut", "validated"] = "cut" if raced.was_cut else "validated"
        why = f"surely more than {CUT} x slower than the baseline" if raced.was_cut else ""
        row = replace(row, state=state, why=why, figures=times, lead=ratio, interval=interval)
        over = self.objective.over(row)
        why = ", ".join(f"{name} is {share:.1%} over {self.objective.bounds[name]}" for name, share in over.items())
        return replace(row, state="missed", why=why) if over else row

    def _count(self, records: Iterable[Record]) -> float:
        """Return the seconds of jobs by their records, of which each counts once in a search."""
        fresh = {str(each.digest): each.seconds for each in records if str(each.digest) not in self._counted}
        self._counted.update(fresh)
        self.seconds += sum(fresh.values())
        return round(sum(fresh.values()), 3)

    def _cost(self, row: TrialRow) -> float:
        """Return what the search minimizes: of trials that keep all bounds, always less than of any other one."""
        if row.state == "failed":
            return math.inf
        if row.state == "missed":
            return _MISSED * (1 + row.loss + sum(self.objective.over(row).values()))
        return float(row.size or 0) if self.objective.figure == SIZE else 1 / (row.lead or 1)

    def _finals(self) -> list[TrialRow]:
        """Time the best trials once more, all rounds, in turns with the baseline."""
        kept = sorted((row for row in self.rows if row.state in _KEPT), key=self._cost)
        baseline = self._baseline if kept else []
        finalists = [*baseline, *(row for row in kept[:_FINALISTS] if row not in baseline)]
        return finalists if len(finalists) < 2 else self._race(finalists, cut=None)  # noqa: PLR2004  one has no rival

    def _choice(self, finals: Sequence[TrialRow]) -> tuple[TrialRow | None, str]:
        """Return the chosen trial, and why: the recipe as it is written stays unless another one surely leads."""
        best, written = min(finals, key=self._cost), finals[0]
        if best.state not in _KEPT:
            return None, "no trial kept the bounds in the last race"
        if written.point or written.state not in _KEPT:
            return best, "the recipe as it is written failed or misses a bound, and this is the best that keeps all"
        if not best.point:
            return best, "no other trial is better than the recipe as it is written"
        if self.objective.figure == SIZE:
            share = (best.size or 0) / (written.size or 1)
            return best, f"its model has {share:.0%} of the size of the recipe as it is written"
        if best.interval is None or best.interval[0] <= 1:
            noise = f"the best other trial, {best.name}, leads by no more than the noise ({best.lead_in_words})"
            return written, f"{noise}, so the recipe as it is written stays"
        return best, f"it is {best.lead_in_words} as fast as the recipe as it is written, in turns with it"


def _accuracies(report: AccuracyReport) -> dict[str, float]:
    """Return the accuracies on which a search can have bounds, by the names of the bounds."""
    names = {"cosine": "worst", "agreement": "share", "rank": "worst", "metric": "value"}
    measures = {name: getattr(report, name) for name in names}
    return {name: getattr(each, names[name]) for name, each in measures.items() if each is not None}
