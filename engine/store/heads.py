"""Notes of each recipe's last build, which `why`, `show` and the next build's schedule read."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from engine import digest
from engine.digest import Digest
from engine.key import changes, leaves
from engine.reporting import TypedReport
from engine.store.notes import Notes
from engine.store.record import Record
from engine.store.store import Store

if TYPE_CHECKING:
    from engine.recipe.load import LoadedRecipe

KIND = "heads"
_IDENTITY = ("recipe.name", "recipe.model.source")
"""The fields of which a recipe keeps one when it is renamed and edited."""


@dataclass(frozen=True)
class JobNote(TypedReport):
    """A note about the last run or look-up of a job."""

    run: Digest
    """The digest of the key of the job's last run, whether the run passed or failed.

    The log of a job's last run is filed under the digest of the run's key.
    """
    key: Digest | None = None
    """The key of the job's last record; None if no run of the job passed, or if the record was collected since."""
    needs: Mapping[str, str] | None = None
    """For each parameter of the step's `run`, the name of the job that made that input in the last build."""
    seconds: float | None = None
    memory: int | None = None
    """The bytes of memory that the run took at its peak, without the pages of mapped files where that was measured."""
    gone: bool = False
    """Whether a verification has reported already that the record of `key` is lost."""


@dataclass(frozen=True)
class NotedBuild(TypedReport):
    """A build of a variant whose results people see."""

    at: float
    """The time of the build, in seconds since the epoch; 0 where it is not known."""
    recipe: Mapping[str, str]
    """A mapping from the dotted names of the recipe's fields to the fields' values at this build."""
    jobs: Mapping[str, Digest]
    """The key of each job that had a record at the end of the build."""


@dataclass(frozen=True)
class Unfinished(TypedReport):
    """Why the last build of a variant did not give all results, and the build before it that gave them."""

    why: str
    """What happened, as text: "failed in validate: ...", "stopped before export" or "waits for Tesla T4"."""
    keeps_earlier: bool
    """Whether people go on to see the results of the build before: a job failed, the build was stopped, or it tried
    other values by `--set`. If not, the results are those of the jobs that passed."""
    jobs: Mapping[str, Digest]
    """The key of each job that had a record at the end of the build."""
    passed: NotedBuild | None = None
    """The last build before it that gave a result; None where no build did."""


@dataclass(frozen=True)
class Head(TypedReport):
    """The last build of a variant."""

    name: str
    recipe: Mapping[str, str]
    """A mapping from the dotted names of the recipe's fields to the fields' values at the last build."""
    jobs: Mapping[str, JobNote]
    used: float = 0.0
    """The time of the variant's last build, in seconds since the epoch."""
    path: str = ""
    """The path of the recipe file as the build named it, relative to the folder in which the store lies."""
    unfinished: Unfinished | None = None
    """Why the build did not give all results; None if it gave them."""

    @property
    def keys(self) -> set[Digest]:
        """The keys of all records of the build, and of the build whose results people see."""
        return {*self.newest.values(), *self.results.jobs.values()}

    @property
    def newest(self) -> Mapping[str, Digest]:
        """The key of the newest record of each job, of whichever build."""
        return {name: note.key for name, note in self.jobs.items() if note.key is not None}

    @property
    def failed(self) -> Unfinished | None:
        """Why the results of the build before stay; None for a build that passed as far as it could."""
        return self.unfinished if self.unfinished is not None and self.unfinished.keeps_earlier else None

    @property
    def results(self) -> NotedBuild:
        """The build whose results people see: the last one; instead of a failed one the last that passed before."""
        if self.failed is not None and self.failed.passed is not None:
            return self.failed.passed
        return NotedBuild(self.used, self.recipe, self.newest if self.unfinished is None else self.unfinished.jobs)


NEVER = Head(name="", recipe={}, jobs={})
"""The head of a variant that was never built."""


@dataclass(frozen=True)
class Subject:
    """The variant that a head is about."""

    path: Path
    """The path of the recipe file."""
    variant: str
    """The label with the variant's values of the matrix; empty without a matrix."""
    name: str
    fields: Mapping[str, str]
    """The recipe's fields by dotted name, which `recipe why` compares with the fields of the last build."""


def subject_of(loaded: LoadedRecipe) -> Subject:
    """Return the subject of a loaded variant's head."""
    values = leaves("recipe", loaded.recipe.model_dump(mode="json", by_alias=True, exclude_none=True))
    fields = {name: str(value) for name, value in values if not isinstance(value, dict | list)}
    return Subject(loaded.path, loaded.variant, loaded.recipe.name, fields)


class Heads:
    """The heads of a store: one note for each recipe file, with the last build of each variant.

    A head belongs to a recipe file, as seen from the store, and to a variant. The name of the recipe does not count:
    recipes of other files or of other projects may have the same name.
    """

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._own: dict[tuple[str, str], Head] = {}
        self._changed: dict[str, dict[str, Head]] = {}

    def of(self, subject: Subject) -> Head:
        """Return the head of a variant; NEVER for a variant that was never built.

        A variant whose label is new, for example since an entry of `include` sets one more field, has the head of the
        last variant with the same name. Of a note with many heads, only the returned head is made of its JSON.
        """
        name = self._name_of(subject)
        if (name, subject.variant) not in self._own:
            heads = self._notes.get(KIND, name)
            own = _head(heads.get(subject.variant)) or _last_named(subject.name, heads)
            self._own[name, subject.variant] = own or NEVER
        return self._own[name, subject.variant]

    def before(self, subject: Subject) -> tuple[Head, str]:
        """Return the head that a variant is compared with, and the path of its recipe if that is another; else "".

        A variant that was never built is compared with the nearest recipe of the same name or model whose file is gone,
        or at whose path the variant's recipe now lies, because a link leads elsewhere.
        """
        own = self.of(subject)
        if own is not NEVER:
            return own, ""
        here, name = self._path_of(subject), self._name_of(subject)
        others = [
            head
            for note, head in self._every
            if (head.path == here and note != name) or (head.path != here and not (self._folder / head.path).exists())
            if any(head.recipe.get(field) == subject.fields.get(field) for field in _IDENTITY)
        ]
        fields = dict(subject.fields)
        nearest = min(others, key=lambda each: (len(changes(dict(each.recipe), fields)), -each.used), default=NEVER)
        return nearest, "" if nearest.path == here else nearest.path

    def keep(self, subject: Subject, jobs: Mapping[str, JobNote], unfinished: Unfinished | None = None) -> None:
        """Put the notes of a build's jobs, and why the build did not give all results, into the head of the variant.

        A job that the build did not reach keeps the note of an earlier build in the head.
        """
        name, (before, _) = self._name_of(subject), self.before(subject)
        if unfinished is not None and before is not NEVER:
            passed = before.results if before.unfinished is None else before.unfinished.passed
            unfinished = replace(unfinished, passed=passed)
        now, path = round(time.time()), self._path_of(subject)
        head = Head(subject.name, subject.fields, {**before.jobs, **jobs}, now, path, unfinished)
        if head != before:
            self._own[name, subject.variant] = head
            self._changed.setdefault(name, {})[subject.variant] = head

    def path(self, subject: Subject) -> Path:
        """Return the path of a recipe file's note."""
        return self._notes.path(KIND, self._name_of(subject))

    def save(self) -> None:
        """Write the new heads; heads that other builds have written to the same note meanwhile stay."""
        for name, heads in self._changed.items():
            _write(self._notes, name, heads)
        self._changed.clear()

    def _name_of(self, subject: Subject) -> str:
        return _name_of(subject.path, self._notes.root)

    def _path_of(self, subject: Subject) -> str:
        return Path(os.path.relpath(subject.path.absolute(), self._folder)).as_posix()

    @cached_property
    def _folder(self) -> Path:
        return self._notes.root.resolve().parent

    @cached_property
    def _every(self) -> list[tuple[str, Head]]:
        """The heads that name their recipe's path, each with the name of its note."""
        return [(name, head) for name, heads in _every(self._notes) for head in heads.values() if head.path]


def _every(notes: Notes) -> Iterator[tuple[str, dict[str, Head]]]:
    """Yield the name of each note, and the heads in it by variant.

    A head that is not valid JSON of a `Head` is left out, because heads explain builds and decide nothing.
    """
    for name, raw in notes.every(KIND):
        heads = {variant: _head(each) for variant, each in raw.items()}
        yield name, {variant: head for variant, head in heads.items() if head is not None}


def _head(raw: object) -> Head | None:
    """Return a head from its JSON; None for a missing head and for JSON that is no `Head`."""
    if raw is not None:
        with suppress(ValueError):
            return Head.from_json(raw)
    return None


def _last_named(name: str, raw: Mapping[str, object]) -> Head | None:
    """Return the head of the variant `name` that was built last; None where a note has no variant of the name."""
    named = [_head(each) for each in raw.values() if isinstance(each, Mapping) and each.get("name") == name]
    return max((head for head in named if head is not None), key=lambda head: head.used, default=None)


def _write(notes: Notes, name: str, heads: Mapping[str, Head]) -> None:
    """Write heads into a note; those of other variants stay, even if this version of the program cannot read them."""
    notes.keep(KIND, name, {**notes.get(KIND, name), **{variant: head.to_json() for variant, head in heads.items()}})


def without_record(store: Store, lost: Collection[str]) -> list[Digest]:
    """Return the keys of jobs in heads whose record is missing, except the keys in `lost`.

    A returned key is marked in its head, so that a later verification does not report the key again.
    """
    missing: list[Digest] = []
    for name, heads in _every(store.notes):
        gone = {job.key for job in _jobs(heads) if job.key and not job.gone and not store.record_path(job.key).exists()}
        if gone:
            missing += [key for key in sorted(gone) if key not in lost and key not in missing]
            _write(store.notes, name, _edited(heads, gone, lambda job: replace(job, gone=True)))
    return missing


def forget(store: Store, keys: Collection[str]) -> None:
    """Remove the keys of deleted records from the notes about the last builds."""
    for name, heads in _every(store.notes):
        if any(job.key in keys for job in _jobs(heads)):
            _write(store.notes, name, _edited(heads, keys, lambda job: replace(job, key=None)))


def runs(store: Store) -> set[Digest]:
    """Return the keys of the last runs of all jobs, whether the runs passed or failed."""
    return {job.run for _, heads in _every(store.notes) for job in _jobs(heads)}


def uses(store: Store) -> Iterator[tuple[Digest, float]]:
    """Yield the key of each job in each last build, with the time of the build in seconds since the epoch."""
    for _, heads in _every(store.notes):
        for head in heads.values():
            yield from ((key, head.used) for key in head.keys)


def _jobs(heads: Mapping[str, Head]) -> Iterator[JobNote]:
    return (job for head in heads.values() for job in head.jobs.values())


def _edited(heads: Mapping[str, Head], keys: Collection[str], edit: Callable[[JobNote], JobNote]) -> dict[str, Head]:
    """Return the heads after the function `edit` has changed the note of each job whose key is in `keys`."""
    return {
        variant: replace(head, jobs={name: edit(job) if job.key in keys else job for name, job in head.jobs.items()})
        for variant, head in heads.items()
    }


def job_note(needs: Mapping[str, str], key: Digest, before: JobNote | None, record: Record | None) -> JobNote:
    """Return the JobNote of a job with `needs` that ran or that the look-up found, for the head of the job's variant.

    If `record` is None, the job's earlier note gets only a new `run`, the key of the job's log.
    """
    if record is not None:
        memory = (record.anonymous_bytes or record.peak_bytes) or None
        return JobNote(run=key, key=key, needs=dict(needs), seconds=record.seconds, memory=memory)
    return JobNote(run=key) if before is None else replace(before, run=key, gone=False)


@cache
def _name_of(path: Path, store: Path) -> str:
    """Return a note's name, from the recipe's path relative to the folder in which the store lies.

    If a project is moved or copied together with its store, the names stay. Two projects that share a store have
    different names, even for recipes with equal paths in their projects.
    """
    relative = Path(os.path.relpath(path.resolve(), store.resolve().parent))
    return digest.of_bytes(relative.as_posix().encode("utf-8", "surrogateescape"))
