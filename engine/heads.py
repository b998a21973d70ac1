"""What each recipe's last build was: the notes by which `why` explains, `show` finds and the next build plans."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from engine import digest
from engine.digest import Digest
from engine.jobs import Job
from engine.notes import Notes
from engine.recipe.load import LoadedRecipe
from engine.store import Record

KIND = "heads"

Head = Mapping[str, Any]
"""name; recipe: its fields as rows; jobs: name -> {run, key, needs, seconds}."""


class Heads:
    """The last build of each variant, a note per recipe file: found by file and variant, not by name."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._files: dict[str, dict[str, Head]] = {}
        self._by_name: dict[str, Head] | None = None
        self._changed: set[str] = set()

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
        }
        if head != before:
            self._file(name)[loaded.variant] = head
            self._changed.add(name)

    def save(self) -> None:
        """Write what was noted."""
        for name in self._changed:
            self._notes.keep(KIND, name, self._files[name])
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


def job_note(job: Job, key: Digest, before: Mapping[str, Any], record: Record | None) -> dict[str, Any]:
    """Return the note of a job that ran or was found: in any case its log, with a record what it made."""
    note = {**before, "run": key}
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
