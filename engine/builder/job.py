"""Jobs: a step that is to run for a variant, and the plain data that a build needs of the step."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from engine.text import canonical

if TYPE_CHECKING:
    from engine.reporting import TypedReport
    from engine.step import Report, Step
    from engine.store.record import Record


FOR = "@"
"""What stands in the name of a job between the name of its step and that of a runtime, where a step has several jobs.
"""


def step_of(job: str) -> str:
    """Return the name of a job's step, by which users select jobs."""
    return job.partition(FOR)[0]


class SourceName(NamedTuple):
    """The fields of a step's `Source` as plain data."""

    uri: str
    revision: str | None
    part: str


class Traits(NamedTuple):
    """What the look-up, the build loop and a worker need of a job's step, as plain data.

    A build that takes a job from a stored plan has the traits without importing the step.
    """

    kind: str
    """The class of the step, written as `module:Class`."""
    work: str
    """The class that a worker runs, written as `module:Class`."""
    options: Mapping[str, Any]
    """The fields of the worker's class in canonical form, from which a worker makes the step again."""
    sources: Mapping[str, SourceName]
    tools: tuple[str, ...]
    variables: tuple[str, ...]
    time_limit: float
    exclusive: bool
    threads: int
    memory: int
    reproducible: bool
    has_own_content: bool
    """Whether keys of later jobs have the output's content, and not the key that the output was made for."""
    delivers: bool
    needs_hardware: bool
    reads_report: bool
    """Whether the step has a type for its report or judges the report, so that the step is imported for a record."""
    report_version: int
    kept_by: tuple[str, ...]


@dataclass(frozen=True)
class Job:
    """One step, with its options, that is to run for one variant of a recipe."""

    recipe: str
    name: str
    origin: Step | Traits
    """The step of a job that was planned in this process; the traits of a job that comes from another."""
    needs: Mapping[str, str]
    """For each parameter of the step's `run`, the name of the job whose output is passed."""
    hermetic: bool = False
    """Whether the recipe wants every read of the job to be covered by a row of the job's key."""
    gates: tuple[str, ...] = ()
    """The jobs that must pass before this job starts, in addition to the jobs whose outputs this job reads."""

    def __repr__(self) -> str:
        """Return the names of the variant and the job."""
        return f"<Job {self.recipe} {self.name}>"

    @property
    def step_name(self) -> str:
        """The name of the job's step, by which users select jobs."""
        return step_of(self.name)

    @property
    def earlier(self) -> tuple[str, ...]:
        """The jobs that must pass before this job, each once."""
        return tuple(dict.fromkeys((*self.needs.values(), *self.gates)))

    @cached_property
    def step(self) -> Step:
        """The step; a job that was made from traits imports it here."""
        if not isinstance(self.origin, Traits):
            return self.origin
        return imported_step(self.origin.kind, self.origin.options, self.name)

    @cached_property
    def traits(self) -> Traits:
        """What a build needs of the step, as plain data."""
        if isinstance(self.origin, Traits):
            return self.origin
        from engine.step import Step

        step, kind = self.origin, type(self.origin)
        work = kind.work_class()
        return Traits(
            kind=f"{kind.__module__}:{kind.__name__}",
            work=f"{work.__module__}:{work.__name__}",
            options=canonical.encode(step, work.model_fields),
            sources={name: SourceName(each.uri, each.revision, each.part) for name, each in step.sources().items()},
            tools=tuple(step.tools_used()),
            variables=tuple(step.variables),
            time_limit=step.time_limit,
            exclusive=step.exclusive,
            threads=step.needs_cpus,
            memory=step.needs_memory,
            reproducible=step.reproducible,
            has_own_content=step.reproducible or bool(step.in_lock),
            delivers=step.delivers,
            needs_hardware=step.hardware() is not None,
            reads_report=kind.report is not None or kind.judge is not Step.judge,
            report_version=1 if kind.report is None else kind.report.version,
            kept_by=tuple(step.kept_by),
        )


def imported_step(kind: str, options: Mapping[str, Any], job: str) -> Step:
    """Return the step of a job, from the name of its class and its options. Raises ValueError for wrong options."""
    module, _, name = kind.partition(":")
    cls = getattr(importlib.import_module(module), name)
    cls.name = step_of(job)
    step: Step = canonical.decode(cls, options)
    return step


def report_version(step: type[Step]) -> int:
    """Return the version number of the form of a step's reports."""
    return 1 if step.report is None else step.report.version


def read_report(step: type[Step], record: Record) -> TypedReport | Report:
    """Return a record's report, as the type that the step names; without a type, as the JSON that was filed.

    Raises ValueError for a report of another type, or of a version that cannot be migrated.
    """
    if step.report is None:
        return dict(record.report)
    return step.report.from_json(record.report, record.report_version)


def current_report(step: type[Step], record: Record) -> Record | None:
    """Return the record with its report migrated to the present version; None for an unreadable report."""
    try:
        report = read_report(step, record)
    except ValueError:
        return None
    if record.report_version == report_version(step):
        return record
    return replace(record, report=cast("TypedReport", report).to_json(), report_version=report_version(step))
