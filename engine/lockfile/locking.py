"""Write the locks of recipes, read them, and compare them with this machine before a build."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.builder.live_rows import LiveRows
from engine.builder.lookup import Lookup
from engine.builder.sources import SourceReadings
from engine.builder.variant import PlannedVariant
from engine.errors import Refusals
from engine.lockfile import file
from engine.lockfile.content import Lock
from engine.lockfile.differences import merged, refuse
from engine.lockfile.lock_rows import LockRows, RecipeLock
from engine.lockfile.names import pins
from engine.lockfile.observe import observe, planned
from engine.store.store import Store


@dataclass(frozen=True)
class Locked:
    """A lock that was written; `changed` is false where the file had the same content already."""

    path: Path
    lock: Lock
    changed: bool

    def __repr__(self) -> str:
        """Return the path, and whether the file changed."""
        return f"<Locked {self.path}: {'changed' if self.changed else 'unchanged'}>"


def write(store: Store, variants: Sequence[PlannedVariant], *, refresh: bool) -> list[Locked]:
    """Write a lock for each recipe that the planned variants belong to.

    Raises UserError, with the errors of all recipes whose lock cannot be written; no lock is written then.
    """
    locks = []
    refusals = Refusals()
    recipes = _by_recipe(variants)
    for recipe, own in recipes.items():
        with refusals.collecting(recipe):
            path = file.path_of(recipe)
            old = file.find(path)
            live = LiveRows(store)
            pinned = pins(old) if old and not refresh else {}
            lookup = Lookup(store, live, sources=SourceReadings(store, refresh=refresh, pinned=pinned))
            here = observe(own, lookup, live, old, ask=True)
            locks.append((path, merged(old, here)))
    store.leave()
    refusals.refuse(len(recipes))
    return [Locked(path, lock, file.write(path, lock)) for path, lock in locks]


def locks_of(variants: Sequence[PlannedVariant], refusals: Refusals) -> dict[Path, RecipeLock]:
    """Return the locks of all recipes by the paths of the locks; `refusals` collects the errors about other locks."""
    locks = {}
    for recipe, own in _by_recipe(variants).items():
        with refusals.collecting(recipe):
            path = file.path_of(recipe)
            locks[path] = RecipeLock(file.read(path, recipe), recipe, own)
    return locks


def lookup_of(
    store: Store,
    locks: Mapping[Path, RecipeLock],
    refusals: Refusals,
    *,
    is_frozen: bool,
    partly: bool,
    overridden: bool = False,
) -> Lookup:
    """Return the look-up of a build with locks, after comparing every lock with this machine.

    A frozen build compares only recipes and jobs: it reads neither sources nor tools nor code. `partly` is True if the
    command line selects some variants or jobs for the build, and `overridden` if `--set` changes the recipes. If a lock
    differs from this machine, `refusals` collects an error that lists the differing rows.
    """
    rows = LockRows(store, [*locks.values()], is_frozen=is_frozen)
    lookup = Lookup(store, rows, sources=rows.sources)
    for path, own in locks.items():
        with refusals.collecting(own.recipe):
            if is_frozen:
                here = planned(own.variants, own.lock)
            else:
                here = observe(own.variants, lookup, rows, own.lock, ask=False)
            refuse(own.lock, here, partly=partly, overridden=overridden, lock=str(path), recipe=str(own.recipe))
    return lookup


def _by_recipe(variants: Sequence[PlannedVariant]) -> dict[Path, tuple[PlannedVariant, ...]]:
    recipes: dict[Path, list[PlannedVariant]] = {}
    for variant in variants:
        recipes.setdefault(variant.loaded.path, []).append(variant)
    return {recipe: tuple(own) for recipe, own in recipes.items()}
