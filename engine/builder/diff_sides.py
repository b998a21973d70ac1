"""Sides: what `recipe diff` compares, a recipe as it is now or in a commit, a variant of it, or its last build."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Unpack

from engine.builder.lookup import Lookup
from engine.builder.planning import variants
from engine.builder.selection import Reading, Selection, listed, select
from engine.builder.summary import Summary, carrying, summarize
from engine.builder.variant import PlannedVariant
from engine.builder.why import Finding, examine
from engine.errors import UsageError
from engine.key import Key
from engine.recipe.project import project_of, store_of
from engine.store import history
from engine.store.history import HeadlineFigures
from engine.store.opening import open_store
from engine.system import git
from engine.system.git import Commit

_VARIANT = "::"


@dataclass(frozen=True)
class SideJob:
    """A job of a variant on one side of a comparison."""

    key: Key | None
    """The job's key, with the rows of all inputs that are known; None if it cannot be computed."""
    needs: Mapping[str, str]
    is_stored: bool
    """Whether the store has the job's record."""
    seconds: float | None = None
    """How long the job will take as far as is known; None for a stored job."""
    error: str = ""
    waits_for: str = ""


@dataclass(frozen=True)
class SideVariant:
    """A variant on one side of a comparison: its jobs in order, and the figures of the jobs that are stored."""

    name: str
    label: str
    jobs: Mapping[str, SideJob]
    figures: HeadlineFigures


@dataclass(frozen=True)
class Side:
    """One side of a comparison."""

    title: str
    variants: tuple[SideVariant, ...]


@dataclass(frozen=True)
class SideName:
    """A side as the user names it: `[REVISION:]RECIPE[::VARIANT]`."""

    path: Path
    revision: str = ""
    variant: str = ""

    @classmethod
    def of(cls, text: str) -> SideName:
        """Return the side that a text names. A file of the whole name counts first."""
        before, _, variant = text.rpartition(_VARIANT) if _VARIANT in text else (text, "", "")
        if os.path.lexists(before) or ":" not in before:
            return cls(Path(before), "", variant)
        revision, _, path = before.partition(":")
        return cls(Path(path), revision, variant)

    @property
    def title(self) -> str:
        """The side as the user names it."""
        revision = f"{self.revision}:" if self.revision else ""
        return f"{revision}{self.path}{_VARIANT if self.variant else ''}{self.variant}"


def read(side_name: SideName, **reading: Unpack[Reading]) -> Side:
    """Read one side. A commit's files lie in a temporary folder meanwhile; nothing of the commit is executed.

    Raises UserError for a recipe that cannot be planned.
    """
    with _planned(side_name, reading) as (planned, lookup):
        return _now(side_name, planned, lookup)


def since_last_build(side_name: SideName, **reading: Unpack[Reading]) -> tuple[Side, Side]:
    """Return the last build of a recipe in this project, and the recipe as it is now. Raises as `read` does."""
    with _planned(side_name, reading) as (planned, lookup):
        last = [_of_last_build(each, lookup) for each in planned]
        built = tuple(side for side in last if side is not None)
        others = (lookup.heads.before(each.subject)[1] for each in planned)
        title = ", ".join(dict.fromkeys(other or side_name.title for other in others))
        return Side(f"last build of {title}", built), _now(side_name, planned, lookup)


@contextmanager
def _planned(side_name: SideName, reading: Reading) -> Iterator[tuple[tuple[PlannedVariant, ...], Lookup]]:
    with ExitStack() as stack:
        selection, lookup = _selected(side_name, stack, reading)
        yield _chosen(side_name, variants(selection)), lookup
        lookup.store.leave(keep=not side_name.revision)


def _now(side_name: SideName, planned: Iterable[PlannedVariant], lookup: Lookup) -> Side:
    return Side(side_name.title, tuple(_of_variant(each, lookup) for each in planned))


def _selected(side_name: SideName, stack: ExitStack, reading: Reading) -> tuple[Selection, Lookup]:
    """Return the recipe of a side, and a look-up in the store of the user's own project."""
    cache = reading.get("cache")
    store = store_of(Path(cache) if cache is not None else None, side_name.path)
    own = project_of(side_name.path)
    if not store.is_dir():
        store = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="recipe-diff-store-")))
    if side_name.revision:
        side_name, top = _written(side_name, stack)
        reading = {**reading, "allow": (*listed(reading.get("allow", ())), top)}
    selection = select(side_name.path, **reading)._replace(cache=store)
    return selection, Lookup(open_store(store, project=own))


def _written(side_name: SideName, stack: ExitStack) -> tuple[SideName, Path]:
    """Write the commit of a side into a temporary folder, and return the side there and the root of the work tree.

    What git does not track, such as large models, is linked: it counts as it is now.
    """
    beside = next(folder for folder in side_name.path.absolute().parents if folder.is_dir())
    commit = git.find(side_name.revision, beside)
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="recipe-diff-"))).resolve()
    git.write(commit, folder)
    inner = Path(os.path.relpath(side_name.path.absolute(), commit.top))
    if not (folder / inner).is_file():
        raise UsageError(f"the commit {side_name.revision!r} has no file {inner}", [f"commit {commit.id}"])
    _link_untracked(commit, folder)
    return replace(side_name, path=folder / inner), commit.top


def _link_untracked(commit: Commit, folder: Path) -> None:
    for name in git.untracked(commit.top):
        target = folder / name
        if not os.path.lexists(target) and target.parent.is_dir():
            target.symlink_to(commit.top / name)
    if not os.path.lexists(folder / ".git"):
        (folder / ".git").mkdir()  # marks the root of the project, as in the work tree


def _chosen(side_name: SideName, planned: tuple[PlannedVariant, ...]) -> tuple[PlannedVariant, ...]:
    if not side_name.variant:
        return planned
    chosen = tuple(each for each in planned if side_name.variant in (each.name, each.loaded.variant))
    if not chosen:
        facts = [f"variants: {', '.join(each.name for each in planned)}"]
        raise UsageError(f"{side_name.path} has no variant {side_name.variant!r}", facts)
    return chosen


def _of_variant(variant: PlannedVariant, lookup: Lookup) -> SideVariant:
    findings = {finding.job.name: finding for finding in examine(variant, lookup)}
    jobs = {name: _of_job(finding) for name, finding in findings.items()}
    records = {name: finding.record for name, finding in findings.items() if finding.record is not None}
    figures = Summary(variant, records).headline
    if carrying(variant.jobs) - records.keys():
        figures = replace(figures, size=None)  # the model itself is not built
    return SideVariant(variant.name, variant.loaded.variant, jobs, figures)


def _of_job(finding: Finding) -> SideJob:
    error = "" if finding.error is None else finding.error.what
    seconds = None if finding.cost is None else finding.cost.seconds
    is_stored = finding.record is not None
    return SideJob(finding.key, finding.job.needs, is_stored, seconds, error, finding.waits_for or "")


def _of_last_build(variant: PlannedVariant, lookup: Lookup) -> SideVariant | None:
    """Return a variant as its last build left it; None for a variant that was never built."""
    head = lookup.heads.before(variant.subject)[0]
    builds = history.of(lookup.store.notes, variant.subject)
    names = builds[-1].jobs.keys() if builds else {job.name for job in variant.jobs}
    jobs = {}
    for name, note in head.jobs.items():
        record = lookup.store.read(note.key) if note.key is not None and name in names else None
        if record is not None:
            jobs[name] = SideJob(record.key, note.needs or {}, is_stored=True)
    if not jobs:
        return None
    return SideVariant(variant.name, variant.loaded.variant, jobs, summarize(lookup, variant, head).headline)
