"""What each recipe's last build was: the notes by which `why` explains, `show` finds and the next build plans."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine import digest
from engine.digest import Digest
from engine.recipe.load import LoadedRecipe
from engine.store.notes import Notes
from engine.store.store import Record, Store

if TYPE_CHECKING:
    from engine.builder.jobs import Job

KIND = "heads"

Head = Mapping[str, Any]
"""name; recipe: its fields as rows; jobs: name -> {run, key, needs, seconds}; used: when, in seconds."""


class Heads:
    """The last build of each variant, a note per recipe file: found by file and variant, not by name."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._files: dict[str, dict[str, Head]] = {}
        self._by_name: dict[str, Head] | None = None
        self._changed: dict[str, dict[str, Head]] = {}

    def of(self, loaded: LoadedRecipe) -> Head:
        """Return the last build of a variant; where its file is new, that of a recipe of the same name; or {}."""
        own = self._file(_name_of(loaded.path, loaded.project)).get(loaded.variant)
        return own if own is not None else self._named(loaded.recipe.name)

    def keep(self, loaded: LoadedRecipe, jobs: Mapping[str, Mapping[str, Any]]) -> None:
        """Note what a build made of each job; jobs that it did not get to keep their earlier note."""
        name = _name_of(loaded.path, loaded.project)
        before = self._file(name).get(loaded.variant, {})
        head = {
            "name": loaded.recipe.name,
            "recipe": rows_of(loaded),
            "jobs": {**before.get("jobs", {}), **jobs},
            "used": round(time.time()),
        }
        if head != before:
            self._file(name)[loaded.variant] = head
            self._changed.setdefault(name, {})[loaded.variant] = head

    def path(self, loaded: LoadedRecipe) -> Path:
        """Return where the note of a recipe file lies."""
        return self._notes.path(KIND, _name_of(loaded.path, loaded.project))

    def save(self) -> None:
        """Write what was noted, beside what other builds of the same file have noted meanwhile."""
        for name, heads in self._changed.items():
            self._notes.keep(KIND, name, {**self._notes.get(KIND, name), **heads})
        self._changed.clear()

    def _file(self, name: str) -> dict[str, Head]:
        if name not in self._files:
            self._files[name] = self._notes.get(KIND, name)
        return self._files[name]

    def _named(self, name: str) -> Head:
        if self._by_name is None:
            every = (head for _, note in self._notes.every(KIND) for head in note.values())
            self._by_name = {head["name"]: head for head in every}
        return self._by_name.get(name, {})


def without_record(store: Store, lost: Collection[str]) -> list[Digest]:
    """Return the keys of builds' jobs whose record is gone, but those just `lost`; each is told once only."""
    missing: list[Digest] = []
    for name, note in store.notes.every(KIND):
        gone = {
            key
            for head in note.values()
            for job in head["jobs"].values()
            if (key := job.get("key")) and not job.get("gone") and not store.record_path(key).exists()
        }
        if gone:
            missing += [key for key in sorted(gone) if key not in lost and key not in missing]
            store.notes.keep(KIND, name, _edited(note, gone, {"gone": True}))
    return missing


def forget(store: Store, keys: Collection[str]) -> None:
    """Take collected records out of the notes."""
    for name, note in store.notes.every(KIND):
        if any(job.get("key") in keys for head in note.values() for job in head["jobs"].values()):
            store.notes.keep(KIND, name, _edited(note, keys, {"key": None}))


def runs(store: Store) -> set[str]:
    """Return the keys of all jobs' last runs, made or failed."""
    return {
        job["run"] for _, note in store.notes.every(KIND) for head in note.values() for job in head["jobs"].values()
    }


def uses(store: Store) -> Iterator[tuple[Digest, float]]:
    """Yield the key of each job of each last build, and when that build was, in seconds since the epoch."""
    for _, note in store.notes.every(KIND):
        for head in note.values():
            yield from ((Digest(job["key"]), head.get("used", 0.0)) for job in head["jobs"].values() if job.get("key"))


def _edited(note: Mapping[str, Head], keys: Collection[str], change: Mapping[str, Any]) -> dict[str, Any]:
    """Return a note with a change to all jobs that have one of these keys."""

    def edited(job: Mapping[str, Any]) -> Mapping[str, Any]:
        if job.get("key") not in keys:
            return job
        return {name: value for name, value in {**job, **change}.items() if value is not None}

    return {
        variant: {**head, "jobs": {name: edited(job) for name, job in head["jobs"].items()}}
        for variant, head in note.items()
    }


def job_note(job: Job, key: Digest, before: Mapping[str, Any], record: Record | None) -> dict[str, Any]:
    """Return the note of a job that ran or was found: in any case its log, with a record what it made."""
    note = {**{name: value for name, value in before.items() if name != "gone"}, "run": key}
    return {**note, "key": key, "needs": dict(job.needs), "seconds": record.seconds} if record is not None else note


def rows_of(loaded: LoadedRecipe) -> dict[str, str]:
    """Return the recipe's fields as rows, as `why` compares them."""
    fields = loaded.recipe.model_dump(mode="json", by_alias=True, exclude_none=True)
    return dict(_rows("recipe", fields))


def _rows(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for inner, each in value.items():
            yield from _rows(f"{name}.{inner}", each)
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _rows(f"{name}.{index}", each)
    else:
        yield name, str(value)


@cache
def _name_of(path: Path, project: Path) -> str:
    """Return the note's name: the recipe's place in its project, so that a copy of the project finds it."""
    file, root = path.resolve(), project.resolve()
    relative = file.relative_to(root) if file.is_relative_to(root) else file
    return digest.of_bytes(relative.as_posix().encode("utf-8", "surrogateescape"))
