"""Trials: a recipe with some fields changed, built up to its validation by the ordinary loop, and what came of it."""

# Nothing here remembers a trial: a trial that is asked for again is found in the store, job by job.

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from engine import api
from engine.builder.options import Options
from engine.builder.summary import Summary
from engine.errors import Exit, UsageError, UserError
from engine.events import Ended, Event
from engine.kit.accuracy.report import AccuracyReport
from engine.recipe import overrides
from engine.step import Section

if TYPE_CHECKING:
    from engine.builder.selection import Reading
    from engine.builder.variant import PlannedVariant
    from engine.store.record import Record

Point = Mapping[str, object]
"""Fields of a recipe and their values, as `--set` has them; an empty point is the recipe as it is written."""
VALIDATE = "validate"


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


class TrialBuilder:
    """The trials of one variant of a recipe."""

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
