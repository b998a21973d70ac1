"""The plan cache: the variants of the last build as plain data, for a build in which only sources have changed."""

from __future__ import annotations

import marshal
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine import snapshot
from engine.system import watched

# A recipe that is refused has no plan, so what makes variants is imported where it is needed.
if TYPE_CHECKING:
    from engine.builder.job import Job
    from engine.builder.live_rows import MachineRows
    from engine.builder.lookup import Lookup
    from engine.builder.options import Options
    from engine.builder.variant import PlannedVariant
    from engine.events import Event, Finished
    from engine.facts import Known
    from engine.key import Key
    from engine.recipe.load import LoadedRecipe
    from engine.snapshot import ChangedFiles
    from engine.step import Hardware
    from engine.store.heads import Subject
    from engine.store.record import Record
    from engine.store.stat_cache import Row

Entry = dict[str, Any]
"""A variant of the last build as plain data, which `engine.report.snapshots` makes.

`variant` has the subject and the jobs of the variant, with the rows of each job's own key, as bytes: a build decodes
those that it looks at. `inputs` and `outputs` are files: those of sources, and what the build made. `planned`,
`ended`, `talk`, `news` and `folded` are what a build prints where nothing has changed, `table` is the variant's table,
and `delivered` the folder of its package.
"""
_FOLDER = "plans"


@dataclass(frozen=True)
class PlanCache:
    """The plan of the build that a snapshot is about. It stands as long as only the content of sources changes."""

    entries: Mapping[str, Entry]
    """The variants by name, in the order of the plan."""
    sources: frozenset[str]
    """The files whose content may change while the plan stands."""
    code: Mapping[str, Sequence[tuple[str, tuple[int, ...]]]]
    """For the digest of each step's code, the code's files with their stat rows."""
    machine: Mapping[str, str]
    """The facts about this machine that records hold."""
    notices: Sequence[str]
    """What every build prints about the recipes."""
    project: str
    """The folder of the project."""
    jobs: int | None
    """How many jobs run at a time, by the `recipe.toml` of the project."""
    set: tuple[str, ...]
    only: tuple[str, ...]
    allow: tuple[str, ...]
    """With `set` and `only`, the options for reading recipes."""

    def load(self, subject: Subject) -> LoadedRecipe:
        """Read the recipe of a variant."""
        from engine.recipe.load import load

        allow = tuple(map(Path, self.allow))
        every = load(subject.path, set=self.set, only=self.only, allow=allow)
        return next(each for each in every if each.variant == subject.variant)


class PlanRows:
    """The rows of keys as the plan of the last build has them: they are as they were while the plan stands."""

    reasons: Mapping[str, str] = {}
    required_tools: Mapping[str, str] = {}

    def __init__(self, plan: PlanCache, changes: ChangedFiles, variants: Sequence[Mapping[str, Any]]) -> None:
        """`variants` are the fields of the variants of the plan that are looked up."""
        self.machine = plan.machine
        self._code, self._changes = plan.code, changes
        self._jobs = {(each["subject"][2], job["job"]["name"]): job for each in variants for job in each["jobs"]}

    def keys(self, job: Job, inputs: Mapping[str, str], *, waits_for: Hardware | None) -> Iterable[Key]:
        """Return no key: a build with a lock keeps no plan."""
        del job, inputs, waits_for
        return ()

    def accept(self, job: Job, record: Record, *, waits_for: Hardware | None) -> None:
        """Accept every record: there is no lock."""

    def own(self, job: Job, *, waits_for: Hardware | None, on: MachineRows | None) -> Key:
        """Return the rows of a job's key for code, options, tools, facts and variables, as the plan has them."""
        del waits_for, on
        rows: Key = self._jobs[job.recipe, job.name]["rows"]
        return rows

    def code_read(self, job: Job) -> Iterable[tuple[Path, Row]]:
        """Return the files of a job's code with the stat rows that the files had when the plan was made."""
        code = self._code[self._jobs[job.recipe, job.name]["rows"]["code"]]
        return ((Path(name), (*row,)) for name, row in code)  # type: ignore[misc]

    def changed_tool(self, job: Job) -> Path | None:
        """Return a file of an installed tool that has changed since the build began; None if no file changed.

        A file that had changed before is one of a source, and of no tool.
        """
        if not job.traits.tools:
            return None
        folders = tuple(f"{entry}{os.sep}" for entry in sys.path if os.path.isdir(entry))
        changed = (name for name in watched.changed(*self._changes.snapshot["watched"]) if name.startswith(folders))
        return next((Path(name) for name in changed if name not in self._changes.names), None)

    def is_judged(self, job: Job, record: Record) -> bool:
        """Say whether the record is the one that the last build read and judged by the same bounds."""
        last: str = self._jobs[job.recipe, job.name]["key"]
        return record.digest == last

    def watched(self) -> Known:
        """Return nothing: the snapshot has what the rows depend on."""
        from engine.facts import Known

        return Known("")


@dataclass(frozen=True)
class ChangedBuild:
    """A build of the variants that read a changed file; the plan of the last build answers for all others."""

    plan: PlanCache
    changes: ChangedFiles
    lookup: Lookup
    variants: Sequence[PlannedVariant]

    @property
    def others(self) -> dict[str, Entry]:
        """The entries of the variants that read no changed file."""
        own = {each.name for each in self.variants}
        return {name: each for name, each in self.plan.entries.items() if name not in own}

    @property
    def parallel(self) -> int:
        """How many jobs run at a time, unless the build's options say so."""
        from engine.builder.executors.executor import default_slots

        return self.plan.jobs or default_slots()

    def build(self, options: Options, on_event: Callable[[Event], None]) -> Finished:
        """Build the variants; every event goes to `on_event`, and the last event, about all variants, is returned.

        A build with `force`, `remake` or on a cluster keeps no snapshot, so no plan stands for it.
        """
        from engine.builder.build_end import announce
        from engine.builder.executors.local import LocalExecutor
        from engine.builder.loop import run

        place = options.out or Path(self.plan.project, "build")
        options = replace(options, out=place, is_what_if=bool(self.plan.set))
        events = run(self.variants, self.lookup, LocalExecutor(options.parallel or self.parallel), options)
        return announce(events, self.lookup.store, on_event, self._with_others)

    def _with_others(self, finished: Finished) -> Finished:
        """Return the last event with the packages of all variants, in the order of the plan."""
        of_others = {name: Path(each["delivered"]) for name, each in self.others.items() if each["delivered"]}
        every = {**of_others, **finished.packages}
        return replace(finished, packages={name: every[name] for name in self.plan.entries if name in every})


def changed_build(changes: ChangedFiles | None) -> ChangedBuild | None:
    """Return the build of what reads the changed files; None if more than the content of sources has changed.

    A source that is no regular file any more, or that was read while recipes were planned, may change the plan itself.
    So may samples that cannot be read: the whole build says why.
    """
    if changes is None:
        return None
    try:
        stored = snapshot.read(path_beside(changes.path))
        plan = PlanCache(**stored["plan"])
        stands = stored["token"] == changes.snapshot["token"]
    except snapshot.UNREADABLE:
        return None
    if not stands or not all(name in plan.sources and os.path.isfile(name) for name in changes.names):
        return None
    if own := [Path(name) for name in changes.names if name.endswith((".jsonl", ".npz"))]:
        from engine.kit.inputs import samples

        if not all(map(samples.is_readable, own)):
            return None
    from engine.builder.lookup import Lookup
    from engine.store.opening import open_store

    readers = [each for each in plan.entries.values() if not set(changes.names).isdisjoint(each["inputs"])]
    every = [marshal.loads(each["variant"]) for each in readers]  # noqa: S302 - from a plan, whose seal fits
    store = open_store(Path(changes.path).parent.parent, project=Path(plan.project))
    lookup = Lookup(store, PlanRows(plan, changes, every))
    return ChangedBuild(plan, changes, lookup, [_variant_of(each, plan.load) for each in every])


def _variant_of(fields: Mapping[str, Any], load: Callable[[Subject], LoadedRecipe]) -> PlannedVariant:
    """Return the variant of plain data; `load` reads its recipe."""
    from engine.builder.variant import PlannedVariant, UnreadRecipe
    from engine.store.heads import Subject

    path, label, name, recipe = fields["subject"]
    jobs = tuple(_job_of(name, each) for each in fields["jobs"])
    return PlannedVariant(UnreadRecipe(Subject(Path(path), label, name, recipe), load), jobs)


def _job_of(recipe: str, fields: Mapping[str, Any]) -> Job:
    from engine.builder.job import Job, SourceName, Traits

    traits = Traits(*fields["traits"])
    sources = {name: SourceName(*source) for name, source in traits.sources.items()}
    return Job(recipe=recipe, origin=traits._replace(sources=sources), **fields["job"])


def fields_of(variant: PlannedVariant, records: Mapping[str, Record], lookup: Lookup) -> Entry:
    """Return the part of an entry from which the variant is made again; `records` are those of its jobs."""
    subject = variant.subject
    jobs = [_fields_of(job, lookup.own_rows(job), str(records[job.name].digest)) for job in variant.jobs]
    fields = {"subject": (str(subject.path), subject.variant, subject.name, dict(subject.fields)), "jobs": jobs}
    return {"variant": marshal.dumps(fields)}


def _fields_of(job: Job, rows: Key, key: str) -> dict[str, Any]:
    sources = {name: tuple(each) for name, each in job.traits.sources.items()}
    return {
        "job": {"name": job.name, "needs": dict(job.needs), "hermetic": job.hermetic, "gates": tuple(job.gates)},
        "traits": tuple({**job.traits._asdict(), "sources": sources}.values()),
        "rows": dict(rows),
        "key": key,
    }


def path_beside(path: str) -> str:
    """Return the path of the plan that belongs to the snapshot at `path`."""
    folder, name = os.path.split(path)
    return os.path.join(os.path.dirname(folder), _FOLDER, name)
