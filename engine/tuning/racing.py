"""Racing: one job that times the models of several points of a search in turns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from engine.builder import joining, registry
from engine.builder.job import read_report
from engine.kit.accuracy.gate import Judged
from engine.kit.bench.race import RaceReport
from engine.steps.race import Contestant, Race
from engine.tuning.trials import VALIDATE

if TYPE_CHECKING:
    from engine.builder.variant import PlannedVariant
    from engine.errors import UserError
    from engine.recipe.schema import Recipe
    from engine.store.record import Record
    from engine.tuning.trials import BuiltTrial, Point, TrialBuilder

_ROWS, _COPIES = "batch", "instance_group"


@dataclass(frozen=True)
class Raced:
    """A race: its report, or why there is none, and the record of the job."""

    report: RaceReport | None
    record: Record | None = None
    error: UserError | None = None


class Races:
    """The trials of a search, and their races."""

    def __init__(self, trials: TrialBuilder) -> None:
        self._trials = trials

    def build(self, point: Point) -> BuiltTrial:
        """Build a trial up to its validation. Raises KeyboardInterrupt for an interruption."""
        return self._trials.build(point)

    def ident(self, built: BuiltTrial, sizes: Mapping[str, int]) -> str | None:
        """Return the same text for points with one model that is called in one way; None for a model not validated."""
        record = built.records.get(VALIDATE)
        if record is None or built.variant is None:
            return None
        return f"{record.digest} {_contestant(built.variant.loaded.recipe, sizes)!r}"

    def race(self, points: Sequence[Point], *, sizes: Mapping[str, int], by: str, cut: float | None) -> Raced:
        """Time the models of points in turns, at the sizes of axes, whatever their accuracy; the first is the baseline.

        `by` is the figure that `cut` is about, as in the step `race`. Raises KeyboardInterrupt for an interruption.
        """
        sessions = [self._trials.session(point) for point in points]
        variants = {str(number): _accepted(session.variants[0]) for number, session in enumerate(sessions)}
        contestants = tuple(_contestant(each.loaded.recipe, sizes) for each in variants.values())
        step = Race.model_validate({"contestants": contestants, "by": by, "cut": cut})
        plan = joining.joined(variants, step, registry.steps())
        built = self._trials.built(replace(sessions[0], variants=(plan,)), points[0])
        record = built.records.get(step.step_name())
        report = None if record is None else read_report(Race, record)
        return Raced(report if isinstance(report, RaceReport) else None, record, built.error)


def _accepted(variant: PlannedVariant) -> PlannedVariant:
    """Return a variant whose model no bound refuses; bounds are no rows of keys."""
    jobs = (
        replace(job, origin=job.step.model_copy(update={"accepts_all": True})) if isinstance(job.step, Judged) else job
        for job in variant.jobs
    )
    return replace(variant, jobs=tuple(jobs))


def _contestant(recipe: Recipe, sizes: Mapping[str, int]) -> Contestant:
    """Return how the model of a recipe is called; a recipe that serves copies of the model is called as often at once.

    Where `sizes` does not say how many rows a call has, it has as many as the server joins.
    """
    triton = recipe.package.triton
    joined = triton.max_batch_size or max((each[_ROWS].max for each in recipe.profiles if _ROWS in each), default=1)
    groups = (triton.model_extra or {}).get(_COPIES) or [{}]
    copies = sum(int(each.get("count", 1)) for each in groups)
    return Contestant.for_recipe(recipe, {_ROWS: joined, **sizes}, instances=copies)
