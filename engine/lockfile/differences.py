"""Where what is here differs from what is locked, row by row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from engine.errors import LockError
from engine.lockfile.content import Lock, LockedVariant, Rows

_LISTED = 60
"""More differing rows than a reader takes in are counted, not listed."""
_DEFAULT = ("locked the default", "here the default")
"""What a recipe does not say has its default."""


@dataclass(frozen=True)
class Difference:
    """One row with its two values; None where one side has no such row, for which `absent` has words."""

    row: str
    locked: str | None
    here: str | None
    absent: tuple[str, str] = ("not locked", "not here")

    def __str__(self) -> str:
        locked = self.absent[0] if self.locked is None else f"locked {self.locked}".rstrip()
        here = self.absent[1] if self.here is None else f"here {self.here}".rstrip()
        return f"{self.row}: {locked}, {here}"


@dataclass(frozen=True)
class Scope:
    """What of a lock is being compared.

    `whole` is false where the command line selects variants or jobs: what it leaves out is no difference.
    `elsewhere` are the tools and environment variables of jobs that wait for other hardware: another machine has them.
    """

    whole: bool = True
    elsewhere: frozenset[str] = frozenset()


def refuse(locked: Lock, here: Lock, scope: Scope, *, lock: str, recipe: str) -> None:
    """Raise LockError, which names every row that differs, unless none does."""
    found = list(differences(locked, here, scope))
    if not found:
        return
    more = [f"and {len(found) - _LISTED} more"] if len(found) > _LISTED else []
    rows = "1 row differs" if len(found) == 1 else f"{len(found)} rows differ"
    raise LockError(
        f"{lock} is not what is here: {rows}",
        [*(str(difference) for difference in found[:_LISTED]), *more],
        f"undo the change, or accept it with `recipe lock {recipe}` and review what that changes in the lock",
    )


def differences(locked: Lock, here: Lock, scope: Scope) -> Iterator[Difference]:
    """Yield the rows that differ.

    Keys and artifacts follow from everything else: they are compared where everything else is equal.
    """
    causes = [
        *_of_rows("", locked.sources, here.sources, scope),
        *_of_rows("tools.", _without(locked.tools, scope), here.tools, scope),
        *_of_rows("env.", _without(locked.variables, scope), here.variables, scope),
        *_of_rows("code of ", locked.steps, here.steps, scope),
        *_of_variants(locked, here, scope),
    ]
    yield from causes or _of_made(locked, here)


def _without(rows: Rows, scope: Scope) -> Rows:
    return {name: value for name, value in rows.items() if name not in scope.elsewhere}


def _of_rows(prefix: str, locked: Rows, here: Rows, scope: Scope) -> Iterator[Difference]:
    for name in sorted(locked.keys() | here.keys()):
        old, new = locked.get(name), here.get(name)
        if old != new and (new is not None or scope.whole):
            yield Difference(prefix + name, old, new)


def _of_variants(locked: Lock, here: Lock, scope: Scope) -> Iterator[Difference]:
    for name in sorted(locked.variants.keys() | here.variants.keys()):
        old, new = locked.variants.get(name), here.variants.get(name)
        if old is not None and new is not None:
            yield from _of_variant(name, old, new, scope)
        elif new is not None or scope.whole:
            yield _presence("variant", name, locked=old is not None)


def _of_variant(name: str, locked: LockedVariant, here: LockedVariant, scope: Scope) -> Iterator[Difference]:
    for each in _of_rows("recipe.", locked.recipe, here.recipe, Scope()):
        yield replace(each, row=f"{each.row} of {name}", absent=_DEFAULT)
    for job in (*here.jobs, *(gone for gone in locked.jobs if gone not in here.jobs)):
        old, new = locked.jobs.get(job), here.jobs.get(job)
        if old is not None and new is not None:
            for each in _of_rows("", old.rows, new.rows, Scope()):
                yield replace(each, row=f"{each.row} of {job} in {name}")
        elif new is not None or scope.whole:
            yield _presence("job", f"{job} of {name}", locked=old is not None)


def _presence(kind: str, name: str, *, locked: bool) -> Difference:
    return Difference(f"{kind} {name}", "" if locked else None, None if locked else "")


def _of_made(locked: Lock, here: Lock) -> Iterator[Difference]:
    """Compare what both know; all sections of `here` are this machine's."""
    headings = [section.facts for section in here.machines]
    known = locked.made_where(lambda facts: facts in headings)
    for (variant, job), new in here.made_where(lambda _: True).items():
        old = known.get((variant, job))
        if old is None:
            continue
        if old.key != new.key:
            yield Difference(f"key of {job} in {variant}", old.key, new.key)
        elif None not in (old.artifact, new.artifact) and old.artifact != new.artifact:
            yield Difference(f"artifact of {job} in {variant}", old.artifact, new.artifact)
