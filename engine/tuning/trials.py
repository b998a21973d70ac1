"""Trials: a recipe with some fields changed, built up to its validation by the ordinary loop, and timed in races."""

# Nothing here remembers a trial: a trial that is asked for again is found in the store, job by job.

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from engine import api
from engine.builder import joining, registry
from engine.builder.job import read_report
from engine.builder.options import Options
from engine.builder.summary import Summary
from engine.errors import Exit, UsageError, UserError
from engine.events import Ended, Event
from engine.kit.accuracy.gate import Judged
from engine.kit.accuracy.report import AccuracyReport
from engine.kit.bench.race import RaceReport
from engine.recipe import overrides
from engine.step import Section
from engine.steps.race import Contestant, Race

if TYPE_CHECKING:
    from engine.builder.selection import Reading
    from engine.builder.variant import PlannedVariant
    from engine.recipe.schema import Recipe
    from engine.store.record import Record

Point = Mapping[str, object]
"""Fields of a recipe and their values, as `--set` has them; an empty point is the recipe as it is written."""
VALIDATE = "validate"
_ROWS, _COPIES = "batch", "instance_group"


@dataclass(frozen=True)
class BuiltTrial:
    """A point and what came of it."""

    point: Point
    variant: PlannedVariant | None
    """The planned variant; None for a point that is refused before any job runs."""
    error: UserError | None = None
    """Why the point is refused, why a job failed, or which bound is missed (JudgementError)."""
    waits_for: str | None = None
    """The hardware that a job needs and this machine lacks."""
    records: Mapping[str, Record] = field(default_factory=dict)
    """The record of each job that has one, by the name of the job."""

    @property
    def summary(self) -> Summary:
        """The reports of the trial's jobs."""
        if self.variant is None:
            raise AssertionError("a point that is refused has no jobs")
        return Summary(self.variant, self.records)

    @property
    def accuracy(self) -> AccuracyReport | None:
        """The accuracy of the built model; that of its graph on the CPU where only this one is measured."""
        if self.variant is None:
            return None
        sections = (Section.VALIDATION, Section.VALIDATION_ONNX)
        return next(filter(None, (self.summary.report(each, AccuracyReport) for each in sections)), None)

    @property
    def size(self) -> int | None:
        """The bytes of the built model."""
        model = None if self.variant is None else self.summary.model
        return None if model is None else model.size


@dataclass(frozen=True)
class Raced:
    """A race: its report, or why there is none, and the record of the job."""

    report: RaceReport | None
    record: Record | None = None
    error: UserError | None = None


class TrialBuilder:
    """The trials of one variant of a recipe, and their races."""

    def __init__(self, recipe: Path, on_event: Callable[[Event], None], **reading: Unpack[Reading]) -> None:
        self._recipe = recipe
        self._on_event = on_event
        self._reading = reading
        self._written = overrides.texts(overrides.SET, reading.get("set", ()))

    def session(self, point: Point, to: Sequence[str] = (VALIDATE,)) -> api.Session:
        """Plan a trial. Raises UserError for a point that is not feasible, and for a recipe with several variants."""
        reading: Reading = {**self._reading, "to": to, "set": [*self._written, *overrides.texts(overrides.SET, point)]}
        session = api.session(self._recipe, **reading)
        if len(session.variants) > 1:
            names = [each.loaded.variant for each in session.variants]
            hint = f"choose one: --only {names[0].replace(',', ' --only ')}"
            raise UsageError(f"a search is of one variant, and {self._recipe} has {len(names)}", names, hint)
        return session

    def build(self, point: Point, to: Sequence[str] = (VALIDATE,)) -> BuiltTrial:
        """Build what is not built of a trial, up to the steps `to`. Raises KeyboardInterrupt for an interruption."""
        try:
            session = self.session(point, to)
        except UserError as error:
            return BuiltTrial(point, None, error)
        return self.built(session, point)

    def built(self, session: api.Session, point: Point) -> BuiltTrial:
        """Build a planned trial; return what came of it."""
        waits: list[str] = []

        def on_event(event: Event) -> None:
            if isinstance(event, Ended) and event.waits_for:
                waits.append(event.waits_for)
            self._on_event(event)

        finished = session.build(Options(is_trial=True), on_event)
        if finished.exit is Exit.INTERRUPTED:
            raise KeyboardInterrupt
        error = finished.failures[0].error if finished.failures else None
        records = {each.job.name: each.record for each in session.findings() if each.record is not None}
        session.lookup.store.leave()
        return BuiltTrial(point, session.variants[0], error, next(iter(waits), None), records)

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
        sessions = [self.session(point) for point in points]
        variants = {str(number): _accepted(session.variants[0]) for number, session in enumerate(sessions)}
        contestants = tuple(_contestant(each.loaded.recipe, sizes) for each in variants.values())
        step = Race.model_validate({"contestants": contestants, "by": by, "cut": cut})
        plan = joining.joined(variants, step, registry.steps())
        built = self.built(replace(sessions[0], variants=(plan,)), points[0])
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
