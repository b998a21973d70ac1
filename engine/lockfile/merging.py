"""Merge a new lock with the old lock, so that the old lock's valid entries for other machines stay."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from engine.lockfile.content import Lock, LockedOutput, Rows, sections


def merged(old: Lock | None, new: Lock, *, elsewhere: Collection[str]) -> Lock:
    """Return the new lock with the old lock's entries for other machines.

    The old lock's sections for other machines stay for each variant whose sources, tools, code and jobs are unchanged.
    A lock in which no row changes keeps its form and the version that wrote it, so that its bytes stay.
    `elsewhere` names the tools and environment variables that are used only by jobs that wait for other hardware; the
    returned lock has the old lock's rows of these tools and variables.
    """
    if old is None:
        return new
    tools = {name: old.tools[name] for name in elsewhere if name in old.tools}
    variables = {name: old.variables[name] for name in elsewhere if name in old.variables}
    new = replace(new, tools={**tools, **new.tools}, variables={**variables, **new.variables})
    headings = [section.facts for section in new.machines]
    same = {variant for variant in old.variants if _is_as_it_was(old, new, variant)}
    others = [
        (section.facts, place, output)
        for section in old.machines
        if section.facts not in headings
        for place, output in section.outputs.items()
        if place[0] in same
    ]
    own = [(section.facts, place, output) for section in new.machines for place, output in section.outputs.items()]
    whole = replace(new, machines=sections([*others, *own]))
    same_rows = replace(whole, version=old.version, is_sealed=old.is_sealed)
    return same_rows if same_rows == old else whole


def _is_as_it_was(old: Lock, new: Lock, variant: str) -> bool:
    """Say whether a variant's jobs have the same keys in both locks, leaving out rows that depend on the machine."""
    was, now = old.variants.get(variant), new.variants.get(variant)
    if was is None or now is None or was.jobs.keys() != now.jobs.keys():
        return False
    if old.variables != new.variables or any(_differ(old_rows, new_rows) for old_rows, new_rows in _common(old, new)):
        return False
    return all(
        was.jobs[name].rows == job.rows and _can_be_one(was.jobs[name].output, job.output)
        for name, job in now.jobs.items()
    )


def _common(old: Lock, new: Lock) -> list[tuple[Rows, Rows]]:
    return [(old.sources, new.sources), (old.tools, new.tools), (old.steps, new.steps)]


def _differ(old: Rows, new: Rows) -> bool:
    return any(new[name] != value for name, value in old.items() if name in new)


def _can_be_one(old: LockedOutput | None, new: LockedOutput | None) -> bool:
    """Say whether two outputs of a job may have equal content; the answer is yes where one of them is not known."""
    if old is None or new is None:
        return True
    return old.key == new.key and (None in (old.artifact, new.artifact) or old.artifact == new.artifact)
