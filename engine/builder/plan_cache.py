"""The plan cache: the variants of the last build as plain data, for a build in which only sources have changed."""

from __future__ import annotations

import marshal
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING, Any

from engine import snapshot
from engine.system import watched

# A recipe that is refused has no plan, so what makes variants is imported where it is needed.
if TYPE_CHECKING:
    from engine.builder.findings import Finding
    from engine.builder.job import Job
    from engine.builder.live_rows import MachineRows
    from engine.builder.lookup import Lookup
    from engine.builder.variant import PlannedVariant
    from engine.events import Event, Finished
    from engine.key import Key
    from engine.known import Known
    from engine.recipe.load import LoadedRecipe
    from engine.snapshot import ChangedFiles
    from engine.step import Hardware
    from engine.store.heads import Subject
    from engine.store.record import Record
    from engine.store.stat_cache import Row

Entry = dict[str, Any]
"""A variant of the last build as plain data, which `engine.report.keeping` makes.

`variant` has the subject and the jobs of the variant, with the rows of each job's own key, as bytes: a build decodes
those that it looks at (`variant_fields`). `inputs` and `outputs` are files: those of local sources, and what the build
made. `planned`, `ended`, `talk`, `news` and `folded` are what a build prints where nothing has changed, and `table`,
`delivered`, `model`, `choice`, `unknown` and `notes` what is known about the variant.
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
    abstract: Sequence[str]
    """The named recipe files that other recipes extend and that make no package of their own."""
    project: str
    """The folder of the project."""
    set: tuple[str, ...]
    only: tuple[str, ...]
    allow: tuple[str, ...]
    """With `set` and `only`, the options for reading recipes."""
    changes: ChangedFiles

    def content(self) -> dict[str, Any]:
        """Return the plan as plain data, of which `standing` makes it again."""
        return {name: value for name, value in vars(self).items() if name != "changes"}

    def load(self, subject: Subject) -> LoadedRecipe:
        """Read the recipe of a variant."""
        from engine.recipe.load import load

        allow = tuple(map(Path, self.allow))
        every = load(subject.path, set=self.set, only=self.only, allow=allow)
        return next(each for each in every if each.variant == subject.variant)

    @property
    def readers(self) -> dict[str, Entry]:
        """The variants that read a changed file."""
        changed = frozenset(self.changes.names)
        return {name: each for name, each in self.entries.items() if not changed.isdisjoint(each["inputs"])}

    @property
    def others(self) -> dict[str, Entry]:
        """The variants that read no changed file."""
        readers = self.readers
        return {name: each for name, each in self.entries.items() if name not in readers}


def standing(changes: ChangedFiles | None) -> PlanCache | None:
    """Return the plan of the last build, if nothing but the content of sources has changed since; else None.

    A source that is no regular file any more, or that was read while recipes were planned, may change the plan itself.
    """
    if changes is None:
        return None
    try:
        stored = snapshot.read(path_beside(changes.path))
        if stored["token"] != changes.snapshot["token"]:
            return None
        plan = PlanCache(**stored["plan"], changes=changes)
    except snapshot.UNREADABLE:
        return None
    return plan if all(name in plan.sources and is_file(name) for name in changes.names) else None


def unchanged(words: Sequence[str]) -> PlanCache | None:
    """Return the plan of the build with the arguments `words`, if nothing has changed since; else None."""
    changes = snapshot.compare(words)
    return None if changes is None or changes.names else standing(changes)


def examined(words: Sequence[str]) -> tuple[Lookup, list[Finding]] | None:
    """Return the look-up and the findings of `recipe why` for the jobs of the last build with the arguments `words`.

    Returns None if the plan does not stand.
    """
    plan = standing(snapshot.compare(words))
    if plan is None:
        return None
    from engine.builder.findings import examine

    lookup, variants = _planned(plan, plan.entries.values())
    findings = [finding for variant in variants for finding in examine(variant, lookup)]
    lookup.store.leave()
    return lookup, findings


class PlanRows:
    """The rows of keys as the plan of the last build has them: they are as they were while the plan stands."""

    reasons: Mapping[str, str] = {}
    required_tools: Mapping[str, str] = {}

    def __init__(self, plan: PlanCache, variants: Iterable[Mapping[str, Any]]) -> None:
        """`variants` are the fields of the variants of the plan that are looked up."""
        self.machine = plan.machine
        self._plan = plan
        self._jobs = {(each["subject"][2], job["name"]): job for each in variants for job in each["jobs"]}

    def keys(self, job: Job, inputs: Mapping[str, str], *, away: Hardware | None) -> Iterable[Key]:
        """Return no key: a build with a lock keeps no plan."""
        del job, inputs, away
        return ()

    def accept(self, job: Job, record: Record, *, away: Hardware | None) -> None:
        """Accept every record: there is no lock."""

    def own(self, job: Job, *, away: Hardware | None, on: MachineRows | None) -> Key:
        """Return the rows of a job's key for code, options, tools, facts and variables, as the plan has them."""
        del away, on
        rows: Key = self._jobs[job.recipe, job.name]["rows"]
        return rows

    def code_read(self, job: Job) -> Iterable[tuple[Path, Row]]:
        """Return the files of a job's code with the stat rows that the files had when the plan was made."""
        code = self._plan.code[self._jobs[job.recipe, job.name]["rows"]["code"]]
        return ((Path(name), (*row,)) for name, row in code)  # type: ignore[misc]

    def changed_tool(self, job: Job) -> Path | None:
        """Return a file of an installed tool that has changed since the build began; None if no file changed."""
        if not job.traits.tools:
            return None
        folders = tuple(f"{entry}{os.sep}" for entry in sys.path if os.path.isdir(entry))
        changed = watched.changed(*self._plan.changes.snapshot["watched"])
        return next((Path(name) for name in changed if name.startswith(folders)), None)

    def is_judged(self, job: Job, record: Record) -> bool:
        """Say whether the record is the one that the last build read and judged by the same bounds."""
        last: str = self._jobs[job.recipe, job.name]["key"]
        return record.digest == last

    def watched(self) -> Known:
        """Return nothing: the snapshot has what the rows depend on."""
        from engine.known import Known

        return Known("")


@dataclass(frozen=True)
class ChangedBuild:
    """A build of the variants that read a changed file; the plan of the last build answers for all others."""

    plan: PlanCache
    lookup: Lookup
    variants: Sequence[PlannedVariant]

    def build(
        self,
        *,
        out: Path | None,
        parallel: int | None,
        force: Iterable[str] = (),
        remake: Iterable[str] = (),
        keep_going: bool,
        allow_waiting: bool,
        wait: float | None = None,
        on: str = "local",
        on_event: Callable[[Event], None],
    ) -> Finished:
        """Run the loop on the variants; every event goes to `on_event`, and the last event, about all, is returned.

        The parameters are those of a session's `build`. A build with `force`, `remake` or `on` keeps no snapshot, so no
        plan stands for it.
        """
        del force, remake, on
        from engine.builder.announcing import announcing
        from engine.builder.executors import slots
        from engine.builder.executors.local import LocalExecutor
        from engine.builder.loop import run
        from engine.builder.options import Options
        from engine.errors import Exit
        from engine.events import Finished

        options = Options(
            out=out or Path(self.plan.project, "build"),
            keep_going=keep_going,
            allow_waiting=allow_waiting,
            wait=wait,
            is_what_if=bool(self.plan.set),
        )
        last = Finished("failed", 0.0, Exit.FAILED, {})
        with announcing(self.lookup.store, on_event):
            for event in run(self.variants, self.lookup, LocalExecutor(parallel or slots.default()), options):
                if isinstance(event, Finished):
                    event = last = replace(event, packages=self._packages(event))  # noqa: PLW2901
                on_event(event)
        return last

    def _packages(self, finished: Finished) -> dict[str, Path]:
        """Return the packages of all variants, in the order of the plan."""
        of_others = {name: Path(each["delivered"]) for name, each in self.plan.others.items() if each["delivered"]}
        every = {**of_others, **finished.packages}
        return {name: every[name] for name in self.plan.entries if name in every}


def changed_build(changes: ChangedFiles | None) -> ChangedBuild | None:
    """Return the build of what reads the changed files; None if the plan does not stand.

    With samples that cannot be read no plan stands: the whole build says why.
    """
    plan = standing(changes)
    if plan is None:
        return None
    if own := [Path(name) for name in plan.changes.names if name.endswith((".jsonl", ".npz"))]:
        from engine.kit.inputs import samples

        if not all(map(samples.is_readable, own)):
            return None
    return ChangedBuild(plan, *_planned(plan, plan.readers.values(), remote=True))


def _planned(
    plan: PlanCache, entries: Iterable[Entry], *, remote: bool = False
) -> tuple[Lookup, Sequence[PlannedVariant]]:
    from engine.builder.lookup import Lookup
    from engine.store.opening import open_store

    every = [variant_fields(entry) for entry in entries]
    variants = [_variant_of(each, plan.load) for each in every]
    project = Path(plan.project) if remote else None
    store = open_store(Path(plan.changes.path).parent.parent, project=project)
    return Lookup(store, PlanRows(plan, every)), variants


def variant_fields(entry: Entry) -> Mapping[str, Any]:
    """Return the `subject` and the `jobs` of a variant as plain data."""
    fields: Mapping[str, Any] = marshal.loads(entry["variant"])  # noqa: S302 - from a plan, whose seal fits
    return fields


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
    return Job(
        recipe=recipe,
        name=fields["name"],
        origin=traits._replace(sources=sources),
        needs=fields["needs"],
        hermetic=fields["hermetic"],
        gates=fields["gates"],
    )


def fields_of(variant: PlannedVariant, records: Mapping[str, Record], lookup: Lookup) -> Entry:
    """Return the part of an entry from which the variant is made again; `records` are those of its jobs."""
    subject = variant.subject
    jobs = [_fields_of(job, lookup.own_rows(job), str(records[job.name].digest)) for job in variant.jobs]
    fields = {"subject": (str(subject.path), subject.variant, subject.name, dict(subject.fields)), "jobs": jobs}
    return {"variant": marshal.dumps(fields)}


def _fields_of(job: Job, rows: Key, key: str) -> dict[str, Any]:
    sources = {name: tuple(each) for name, each in job.traits.sources.items()}
    return {
        "name": job.name,
        "needs": dict(job.needs),
        "gates": tuple(job.gates),
        "hermetic": job.hermetic,
        "traits": tuple({**job.traits._asdict(), "sources": sources}.values()),
        "rows": dict(rows),
        "key": key,
    }


def path_beside(path: str) -> str:
    """Return the path of the plan that belongs to the snapshot at `path`."""
    folder, name = os.path.split(path)
    return os.path.join(os.path.dirname(folder), _FOLDER, name)


def is_file(name: str) -> bool:
    """Say whether a name leads to a regular file."""
    try:
        return S_ISREG(os.stat(name).st_mode)
    except OSError:
        return False
