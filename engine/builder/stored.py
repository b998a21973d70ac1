"""Variants and jobs from a stored plan: a build runs them in its ordinary loop, without reading recipes again."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from engine.builder.job import Job, SourceName, Traits
from engine.builder.lookup import Lookup
from engine.builder.variant import PlannedVariant, UnreadRecipe
from engine.store.heads import Subject
from engine.store.record import Record
from engine.store.stat_cache import Row
from engine.store.store import Store
from engine.system import watched

if TYPE_CHECKING:
    from engine.builder.plan_cache import PlanCache
    from engine.key import Key
    from engine.recipe.load import LoadedRecipe
    from engine.snapshot import ChangedFiles


LOCAL = "file:"
"""How the URI of a source begins that is a path."""


class StoredRows(NamedTuple):
    """What a stored plan has of a job's key."""

    rows: Key
    """The rows of the job's key except the rows for its inputs."""
    last: str
    """The digest of the job's key in the build that stored the plan."""


def rows_in(every: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], StoredRows]:
    """Return the rows of all jobs of variants that are the plain data of `fields_of`, by recipe and job."""
    return {
        (fields["subject"][2], each["name"]): StoredRows(each["rows"], each["key"])
        for fields in every
        for each in fields["jobs"]
    }


def variant_of(fields: Mapping[str, Any], load: Callable[[Subject], LoadedRecipe]) -> PlannedVariant:
    """Return the variant of the plain data that `fields_of` returned; `load` reads the variant's recipe."""
    path, label, name, recipe = fields["subject"]
    jobs = tuple(job_of(name, each) for each in fields["jobs"])
    return PlannedVariant(UnreadRecipe(Subject(Path(path), label, name, recipe), load), jobs)


def job_of(recipe: str, fields: Mapping[str, Any]) -> Job:
    """Return the job of the plain data that `plain` returned."""
    traits = Traits(*fields["traits"])
    sources = {name: SourceName(*source) for name, source in traits.sources.items()}
    return Job(
        recipe=recipe,
        name=fields["name"],
        origin=traits._replace(sources=sources),
        needs=fields["needs"],
        hermetic=fields["hermetic"],
        gates=fields["gates"],
    )


class StoredLookup(Lookup):
    """A look-up that takes the rows of a key from the stored plan, except the rows for inputs."""

    def __init__(
        self, store: Store, plan: PlanCache, changes: ChangedFiles, variants: Iterable[Mapping[str, Any]]
    ) -> None:
        """`variants` are the variants of the plan that are looked up, as plain data."""
        super().__init__(store)
        self._rows = rows_in(variants)
        self._plan = plan
        self._changes = changes

    def own_rows(self, job: Job, kind: str = "") -> Key:
        """Return the rows of a job's key for code, options, tools, facts and variables, as the stored plan has them."""
        del kind
        return self._rows[job.recipe, job.name].rows

    def tool_reasons(self) -> Mapping[str, str]:
        """Return why the code of tools may differ from what their versions promise: no row for a tool has changed."""
        return {}

    def changed_tool(self, job: Job) -> Path | None:
        """Return a file of an installed tool that has changed since the build began; None if no file changed."""
        if not job.traits.tools:
            return None
        folders = tuple(f"{entry}{os.sep}" for entry in sys.path if os.path.isdir(entry))
        changed = watched.changed(*self._changes.snapshot["watched"])
        return next((Path(name) for name in changed if name.startswith(folders)), None)

    def is_judged(self, job: Job, record: Record) -> bool:
        """Say whether the record is the one that the last build read and judged by the same bounds."""
        return record.digest == self._rows[job.recipe, job.name].last

    def code_read(self, job: Job) -> Iterable[tuple[Path, Row]]:
        """Return the files of a job's code with the stat rows that the files had when the plan was stored."""
        code = self.own_rows(job)["code"]
        return ((Path(name), (*row,)) for name, row in self._plan.code[code])  # type: ignore[misc]

    def describe_machine(self) -> Mapping[str, str]:
        """Return the facts that describe this machine, as the stored plan has them."""
        return self._plan.machine


def fields_of(variant: PlannedVariant, records: Mapping[str, Record], rows: Callable[[Job], Key]) -> dict[str, Any]:
    """Return a variant as plain data, with the rows of each job's own key and the job's record."""
    subject = variant.subject
    return {
        "subject": (str(subject.path), subject.variant, subject.name, dict(subject.fields)),
        "jobs": [_fields_of_job(job, records[job.name], rows(job)) for job in variant.jobs],
    }


def _fields_of_job(job: Job, record: Record, rows: Key) -> dict[str, Any]:
    return {**plain(job), "rows": dict(rows), "key": str(record.digest), "artifact": str(record.artifact)}


def plain(job: Job) -> dict[str, Any]:
    """Return a job as the plain data of which `job_of` makes it again."""
    traits = job.traits
    sources = {name: tuple(each) for name, each in traits.sources.items()}
    return {
        "name": job.name,
        "needs": dict(job.needs),
        "gates": tuple(job.gates),
        "hermetic": job.hermetic,
        "traits": tuple({**traits._asdict(), "sources": sources}.values()),
    }
