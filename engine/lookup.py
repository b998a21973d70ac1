"""Which record, if any, is a job's: the same answer for `build`, `why` and `show`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from engine import code, machine, sources
from engine.digest import Digest
from engine.errors import StepError, UserError
from engine.heads import Heads, rows_of
from engine.jobs import Job
from engine.key import Change, Key, changes, digest_of, key_of
from engine.recipe.load import LoadedRecipe
from engine.sources import Resolved
from engine.stat_cache import Row, row_of, settled_row, stat_row
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

    def __init__(self, store: Store, *, refresh: bool = False, pinned: Mapping[str, str] | None = None) -> None:
        """`pinned` are the commits of a hub's revisions, by "hf:REPO@REVISION", that nobody is asked about."""
        self.store = store
        self.heads = Heads(store.notes)
        self._refresh = refresh
        self._pinned = pinned or {}
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
            rows: dict[Path, Row] = {}

            def digest_file(path: Path) -> Digest:
                rows[path] = settled_row(path)  # as it was before it was read
                return self.store.contents.digest(path)

            resolved = sources.resolve(
                source,
                digest_file=digest_file,
                remembered=lambda name: self._pinned.get(name) or self._resolutions.get(name),
                refresh=self._refresh,
            )
            if resolved.resolution is not None and resolved.resolution[0] not in self._pinned:
                name, commit = resolved.resolution
                self._resolutions[name] = commit
                self.store.notes.keep("resolutions", "hub", self._resolutions)
            known = _Watched(resolved, {path: rows.get(path) or stat_row(path) for path in resolved.files})
            self._sources[source] = known
        return known.resolved

    def accept(self, job: Job, record: Record) -> None:
        """Raise UserError where a build must not go on with this record; here every record will do."""

    def changed_meanwhile(self, job: Job) -> Path | None:
        """Return a file behind a job's sources or code that changed since its content was read, or None.

        A worker imports a step when its turn comes, perhaps long after the key was reckoned.
        """
        for path, before in code.of_module(type(job.step).__module__).before.items():
            if _differs(path, row_of(before)):
                return path
        for source in job.step.sources().values():
            known = self._sources.get(source)
            for path, row in (known.rows if known else {}).items():
                if _differs(path, row):
                    return path
        return None

    def watched(self) -> Iterator[Path]:
        """Yield every local file and folder that the keys were made from."""
        for known in self._sources.values():
            yield from known.rows


def _differs(path: Path, row: Row) -> bool:
    try:
        return stat_row(path) != row
    except OSError:
        return True


def examine(variant: Variant, lookup: Lookup) -> list[Finding]:
    """Say for each job of a variant whether it is cached, and if not, which rows decided it."""
    head = lookup.heads.of(variant.loaded)
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


def _recipe_changes(head: Mapping[str, Any], variant: Variant) -> tuple[Change, ...]:
    old = head.get("recipe")
    return changes(old, rows_of(variant.loaded)) if old else ()
