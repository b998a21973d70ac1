"""Which record, if any, is a job's: the same answer for `build`, `why` and `show`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from engine import code, digest, machine, sources
from engine.digest import Digest
from engine.errors import StepError, UserError
from engine.jobs import Job
from engine.key import Change, Key, changes, digest_of, key_of
from engine.recipe.load import LoadedRecipe
from engine.sources import Resolved
from engine.stat_cache import Row, stat_row
from engine.step import Source
from engine.store import Record, Store

State = Literal["cached", "stale", "new", "unknown"]


@dataclass(frozen=True)
class Variant:
    """One variant of a recipe with its plan."""

    loaded: LoadedRecipe
    jobs: tuple[Job, ...]

    @property
    def name(self) -> str:
        """The variant's name, unique in a build."""
        return self.loaded.recipe.name

    @property
    def head(self) -> str:
        """Where the store notes what this variant's last build was: by file and variant, not by name."""
        path = self.loaded.path.resolve()
        project = self.loaded.project.resolve()
        relative = path.relative_to(project) if path.is_relative_to(project) else path
        return digest.of_rows([(relative.as_posix(), self.loaded.variant)])


@dataclass(frozen=True)
class Finding:
    """What `why` says of a job."""

    job: Job
    state: State
    changes: tuple[Change, ...] = ()
    record: Record | None = None
    error: UserError | None = None


@dataclass
class _Watched:
    """A source as it was when its content was read."""

    resolved: Resolved
    rows: Mapping[Path, Row] = field(default_factory=dict)


class Lookup:
    """Computes keys; reads each source and each version once in its life."""

    def __init__(self, store: Store, *, refresh: bool = False) -> None:
        self.store = store
        self._refresh = refresh
        self._sources: dict[Source, _Watched] = {}
        self._resolutions = store.notes.get("resolutions", "hub")

    def key(self, job: Job, inputs: Mapping[str, str]) -> Key:
        """Return a job's key, given the content of the inputs that other jobs make.

        Raises UserError where a source cannot be found or resolved.
        """
        step = job.step
        found = {name: self.source(source).row for name, source in step.sources().items()}
        try:
            facts = machine.facts(step.facts_used())
        except KeyError as unknown:
            raise StepError(
                f"the step {job.name!r} depends on a fact that nobody knows: {unknown}",
                [f"facts: {', '.join(machine.known_facts())}"],
            ) from None
        return key_of(
            job,
            code=code.of_module(type(step).__module__).digest,
            inputs={**found, **inputs},
            tools=machine.tools(step.tools_used()),
            facts=facts,
            variables={name: os.environ[name] for name in step.variables if name in os.environ},
        )

    @cached_property
    def machine(self) -> Mapping[str, str]:
        """The facts of this machine, as records keep them."""
        return machine.known_facts()

    def source(self, source: Source) -> Resolved:
        """Return where a source is and what its content is."""
        known = self._sources.get(source)
        if known is None:
            resolved = sources.resolve(
                source,
                digest_file=self.store.contents.digest,
                remembered=self._resolutions.get,
                refresh=self._refresh,
            )
            if resolved.resolution is not None:
                name, commit = resolved.resolution
                self._resolutions[name] = commit
                self.store.notes.keep("resolutions", "hub", self._resolutions)
            known = _Watched(resolved, {path: stat_row(path) for path in resolved.files})
            self._sources[source] = known
        return known.resolved

    def changed_meanwhile(self, job: Job) -> Path | None:
        """Return a file behind a job's sources that changed since its content was read, or None."""
        for source in job.step.sources().values():
            known = self._sources.get(source)
            for path, row in (known.rows if known else {}).items():
                try:
                    if stat_row(path) != row:
                        return path
                except OSError:
                    return path
        return None

    def watched(self) -> Iterator[Path]:
        """Yield every local file and folder that the keys were made from."""
        for known in self._sources.values():
            yield from known.rows


def examine(variant: Variant, lookup: Lookup) -> list[Finding]:
    """Say for each job of a variant whether it is cached, and if not, which rows decided it."""
    head = head_of(lookup.store, variant)
    recipe = _recipe_changes(head, variant)
    findings: dict[str, Finding] = {}
    for job in variant.jobs:
        findings[job.name] = _examine(job, findings, head, lookup, recipe)
    return list(findings.values())


def _examine(
    job: Job, earlier: Mapping[str, Finding], head: Mapping[str, Any], lookup: Lookup, recipe: Sequence[Change]
) -> Finding:
    known = {name: earlier[maker].record for name, maker in job.needs.items()}
    inputs = {name: str(record.artifact) for name, record in known.items() if record is not None}
    try:
        key = lookup.key(job, inputs)
    except UserError as error:
        return Finding(job, "unknown", error=error)
    missing = [name for name, record in known.items() if record is None]
    record = None if missing else lookup.store.find(key)
    if record is not None:
        return Finding(job, "cached", record=record)
    last = head.get("jobs", {}).get(job.name, {})
    before = lookup.store.read(last["key"]) if "key" in last else None
    if not missing and last.get("key") == digest_of(key):
        return Finding(job, "stale", (_lost(before),))
    rewired = tuple(recipe) if last.get("needs") != dict(job.needs) else ()
    if before is None:
        return Finding(job, "unknown" if missing else "new", rewired)
    rows = changes(before.key, key)
    return Finding(job, "unknown" if missing else "stale", (*rows, *rewired))


def _lost(before: Record | None) -> Change:
    """Return why a job with the same key is made again: the store no longer has what it made, or has it damaged."""
    if before is None:
        return Change("record", "stored", "missing or damaged")
    return Change("artifact", str(before.artifact), "missing or damaged")


def head_of(store: Store, variant: Variant) -> dict[str, Any]:
    """Return the note of a variant's last build; where its file is new, that of a recipe of the same name."""
    return store.notes.get("heads", variant.head) or store.notes.named("heads", variant.name)


def keep_head(store: Store, variant: Variant, jobs: Mapping[str, Mapping[str, Any]]) -> None:
    """Note what a variant's build made of each job; jobs that it did not get to keep their earlier note."""
    before = store.notes.get("heads", variant.head)
    head = {
        "name": variant.name,
        "file": variant.loaded.path.name,
        "recipe": recipe_rows(variant),
        "jobs": {**before.get("jobs", {}), **jobs},
    }
    if head != before:
        store.notes.keep("heads", variant.head, head)


def recipe_rows(variant: Variant) -> dict[str, str]:
    """Return the recipe's fields as rows, as `why` compares them."""
    fields = variant.loaded.recipe.model_dump(mode="json", by_alias=True, exclude_none=True)
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


def _recipe_changes(head: Mapping[str, Any], variant: Variant) -> tuple[Change, ...]:
    old = head.get("recipe")
    return changes(old, recipe_rows(variant)) if old else ()


def job_note(job: Job, key: Digest, before: Mapping[str, Any], record: Record | None) -> dict[str, Any]:
    """Return the head's note of a job that ran or was found: in any case its log, with a record what it made."""
    note = {**before, "run": key}
    return {**note, "key": key, "needs": dict(job.needs), "seconds": record.seconds} if record is not None else note
