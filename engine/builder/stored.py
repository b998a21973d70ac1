"""Variants and jobs from a stored plan: a build runs them in its ordinary loop, without reading recipes again."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.builder.job import Job, SourceName, Traits
from engine.builder.lookup import Lookup
from engine.builder.trace import declaring
from engine.builder.variant import PlannedVariant
from engine.store.heads import Subject
from engine.store.record import Record
from engine.store.stat_cache import Row
from engine.store.store import Store
from engine.system import watched
from engine.text import canonical

if TYPE_CHECKING:
    from engine.builder.selection import Reading
    from engine.key import Key
    from engine.recipe.load import LoadedRecipe
    from engine.snapshot import ChangedFiles
    from engine.step import Step
    from engine.store.stored_plan import StoredPlan


LOCAL = "file:"
"""How the URI of a source begins that is a path."""


class StoredJob(Job):
    """A job of a stored plan. Its step is imported only if the loop needs more than the job's traits."""

    def __init__(self, recipe: str, fields: Mapping[str, Any]) -> None:
        """`fields` is an item of `jobs` in the plain data that `fields_of` returned."""
        traits = Traits(*fields["traits"])
        sources = {name: SourceName(*source) for name, source in traits.sources.items()}
        vars(self).update(
            recipe=recipe,
            name=fields["name"],
            needs=fields["needs"],
            hermetic=fields["hermetic"],
            gates=fields["gates"],
            traits=traits._replace(sources=sources),
            rows=fields["rows"],
            last=fields["key"],
        )

    rows: Key
    """The rows of the job's key except the rows for its inputs."""
    last: str
    """The digest of the job's key in the build that stored the plan."""

    @cached_property
    def step(self) -> Step:
        """The step."""
        module, _, name = self.traits.kind.partition(":")
        kind = getattr(importlib.import_module(module), name)
        kind.name = self.step_name
        step: Step = canonical.decode(kind, self.traits.options)
        return step


class StoredVariant(PlannedVariant):
    """A variant of a stored plan. Its recipe is read only if the loop needs more than the subject of its head."""

    def __init__(self, fields: Mapping[str, Any], load: Callable[[Subject], LoadedRecipe]) -> None:
        """`fields` is the plain data that `fields_of` returned; `load` reads the variant's recipe."""
        path, label, name, recipe = fields["subject"]
        jobs = tuple(StoredJob(name, each) for each in fields["jobs"])
        vars(self).update(jobs=jobs, subject=Subject(Path(path), label, name, recipe), load=load)

    load: Callable[[Subject], LoadedRecipe]

    @property
    def name(self) -> str:
        """The name of the variant, unique in a build."""
        return self.subject.name

    @cached_property
    def loaded(self) -> LoadedRecipe:
        """The variant of the recipe file."""
        return self.load(self.subject)


def loading(reading: Reading) -> Callable[[Subject], LoadedRecipe]:
    """Return a function that reads the recipe of a stored variant, with the options `reading`."""

    def load(subject: Subject) -> LoadedRecipe:
        from engine.builder.selection import select
        from engine.recipe.load import load

        selection = select([subject.path], **reading)
        every = load(subject.path, set=selection.set, only=selection.only, allow=selection.allow)
        return next(each for each in every if each.variant == subject.variant)

    return load


class StoredLookup(Lookup):
    """A look-up that takes the rows of a key from the stored plan, except the rows for inputs."""

    def __init__(self, store: Store, plan: StoredPlan, changes: ChangedFiles) -> None:
        super().__init__(store)
        self._plan = plan
        self._changes = changes

    def own_rows(self, job: Job, kind: str = "") -> Key:
        """Return the rows of a job's key for code, options, tools, facts and variables, as the stored plan has them."""
        return job.rows if isinstance(job, StoredJob) else super().own_rows(job, kind)

    def tool_reasons(self) -> Mapping[str, str]:
        """Return why the code of tools may differ from what their versions promise: no row for a tool has changed."""
        return {}

    def changed_tool(self, job: Job) -> Path | None:
        """Return a file of an installed tool that has changed since the build began; None if no file changed."""
        if not job.traits.tools:
            return None
        folders = tuple(f"{entry}{os.sep}" for entry in sys.path if os.path.isdir(entry))
        changed = watched.changed(self._changes.snapshot["watched"])
        return next((Path(name) for name in changed if name.startswith(folders)), None)

    def is_judged(self, job: Job, record: Record) -> bool:
        """Say whether the record is the one that the last build read and judged by the same bounds."""
        return isinstance(job, StoredJob) and record.digest == job.last

    def code_read(self, job: Job) -> Iterable[tuple[Path, Row]]:
        """Return the files of a job's code with the stat rows that the files had when the plan was stored."""
        if not isinstance(job, StoredJob):
            return super().code_read(job)
        return ((Path(name), (*row,)) for name, row in self._plan.code[job.rows["code"]])  # type: ignore[misc]

    def describe_machine(self) -> Mapping[str, str]:
        """Return the facts that describe this machine, as the stored plan has them."""
        return self._plan.machine


def has_warnings(job: Job, record: Record) -> bool:
    """Say whether a build prints warnings about what the job read. A stored plan does not know their lines."""
    return bool(record.gaps) and not job.traits.kind.startswith(f"{declaring.OURS}.")


def fields_of(variant: PlannedVariant, records: Mapping[str, Record], rows: Callable[[Job], Key]) -> dict[str, Any]:
    """Return a variant as plain data, with the rows of each job's own key and the job's record."""
    subject = variant.subject
    return {
        "subject": (str(subject.path), subject.variant, subject.name, dict(subject.fields)),
        "jobs": [_fields_of_job(job, records[job.name], rows(job)) for job in variant.jobs],
    }


def _fields_of_job(job: Job, record: Record, rows: Key) -> dict[str, Any]:
    return {**plain(job, rows=rows, last=str(record.digest)), "artifact": str(record.artifact)}


def plain(job: Job, *, rows: Key, last: str) -> dict[str, Any]:
    """Return a job as the plain data of which `StoredJob` makes it again; `last` is the digest of its last key."""
    traits = job.traits
    sources = {name: tuple(each) for name, each in traits.sources.items()}
    return {
        "name": job.name,
        "needs": dict(job.needs),
        "gates": tuple(job.gates),
        "hermetic": job.hermetic,
        "traits": tuple({**traits._asdict(), "sources": sources}.values()),
        "rows": dict(rows),
        "key": last,
    }
