"""Explain each job for `recipe why`, for example that it is cached, or which rows of its key changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from engine.builder import reports
from engine.builder.job import Job
from engine.builder.lookup import Lookup, PlannedVariant, content_of
from engine.errors import UserError
from engine.key import Change, changes, digest_of
from engine.store.heads import Head
from engine.store.store import Record

State = Literal["cached", "stale", "new", "unknown"]


@dataclass(frozen=True)
class Finding:
    """The state of a job for `recipe why`, and the rows of the key that explain the state."""

    job: Job
    state: State
    changes: tuple[Change, ...] = ()
    record: Record | None = None
    error: UserError | None = None


def examine(variant: PlannedVariant, lookup: Lookup) -> list[Finding]:
    """Return for each job of a variant whether it is cached, and if not, the rows that changed."""
    head = lookup.heads.of(variant.subject)
    recipe = _recipe_changes(head, variant)
    findings: dict[str, Finding] = {}
    for job in variant.jobs:
        findings[job.name] = _examine(job, findings, head, lookup, recipe)
    return list(findings.values())


def _examine(job: Job, earlier: Mapping[str, Finding], head: Head, lookup: Lookup, recipe: Sequence[Change]) -> Finding:
    known = {name: earlier[maker].record for name, maker in job.needs.items()}
    makers = {name: earlier[maker].job for name, maker in job.needs.items()}
    inputs = {name: content_of(makers[name], record) for name, record in known.items() if record is not None}
    try:
        key = lookup.key(job, inputs)
    except UserError as error:
        return Finding(job, "unknown", error=error)
    missing = [name for name, record in known.items() if record is None]
    record = None if missing else lookup.find(job, key)
    if record is not None:
        return Finding(job, "cached", record=record)
    last = head.jobs.get(job.name)
    before = lookup.store.read(last.key) if last and last.key else None
    if not missing and last and last.key == digest_of(key):
        return Finding(job, "stale", (_lost(job, before),))
    rewired = tuple(recipe) if last is None or last.needs != dict(job.needs) else ()
    away = lookup.away(job)
    if before is None:
        nearest = () if away is None else lookup.elsewhere.nearest(job.name, key, away)
        return Finding(job, "unknown" if missing else "new", (*nearest, *rewired))
    rows = changes(before.key, key) if away is None else lookup.elsewhere.differences(before, key, away)
    return Finding(job, "unknown" if missing else "stale", (*rows, *rewired))


def _lost(job: Job, before: Record | None) -> Change:
    """Return why a job with an unchanged key runs again, as a Change: its record or artifact is missing or damaged."""
    if before is None:
        return Change("record", "stored", "missing or damaged")
    if reports.current(type(job.step), before) is None:
        known = reports.version_of(type(job.step))
        return Change("report", f"version {before.report_version}", f"cannot be read as version {known}")
    if job.hermetic and not before.trace:
        return Change("trace", "none", "needed, because the recipe is hermetic")
    return Change("artifact", str(before.artifact), "missing or damaged")


def _recipe_changes(head: Head, variant: PlannedVariant) -> tuple[Change, ...]:
    return changes(dict(head.recipe), dict(variant.subject.fields)) if head.recipe else ()
