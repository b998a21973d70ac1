"""Locks of whole recipes: written, found, and held against what is here before a build."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.builder.lookup import Lookup, Variant
from engine.lockfile import file
from engine.lockfile.building import FrozenLookup, LockedLookup
from engine.lockfile.content import Lock
from engine.lockfile.differences import Scope, refuse
from engine.lockfile.merging import merged
from engine.lockfile.names import pins
from engine.lockfile.observe import observe
from engine.store.store import Store


@dataclass(frozen=True)
class Locked:
    """A lock as it was written; `changed` is false where the file said just this already."""

    path: Path
    lock: Lock
    changed: bool


@dataclass(frozen=True)
class Found:
    """A recipe's lock, and the variants that it is about."""

    lock: Lock
    recipe: Path
    variants: tuple[Variant, ...]


def write(store: Store, variants: Sequence[Variant], *, refresh: bool) -> list[Locked]:
    """Write the lock of each recipe that the variants come from. Raises UserError; then no lock is written."""
    made = []
    for recipe, own in _by_recipe(variants).items():
        path = file.path_of(recipe)
        old = file.find(path)
        lookup = Lookup(store, refresh=refresh, pinned=pins(old) if old and not refresh else {})
        here = observe(own, lookup, old, ask=True)
        store.leave()
        made.append((path, merged(old, here.lock, elsewhere=here.elsewhere)))
    return [Locked(path, lock, file.write(path, lock)) for path, lock in made]


def locks_of(variants: Sequence[Variant]) -> dict[Path, Found]:
    """Return the locks of all recipes by their paths. Raises LockError where one is missing or broken."""
    found = {}
    for recipe, own in _by_recipe(variants).items():
        path = file.path_of(recipe)
        found[path] = Found(file.read(path, recipe), recipe, own)
    return found


def checked(store: Store, locks: Mapping[Path, Found], *, partly: bool) -> Lookup:
    """Return the look-up of a build that every lock agrees to.

    With `partly`, only some variants or jobs are about to be built. Raises LockError, which names all that differs.
    """
    lookup = LockedLookup(store, _by_variant(locks))
    for path, found in locks.items():
        here = observe(found.variants, lookup, found.lock, ask=False)
        scope = Scope(whole=not partly, elsewhere=here.elsewhere)
        refuse(found.lock, here.lock, scope, lock=str(path), recipe=str(found.recipe))
    return lookup


def frozen(store: Store, locks: Mapping[Path, Found]) -> Lookup:
    """Return the look-up of a build that trusts the locks."""
    variants = {variant.name: variant for found in locks.values() for variant in found.variants}
    return FrozenLookup(store, _by_variant(locks), variants)


def _by_recipe(variants: Sequence[Variant]) -> dict[Path, tuple[Variant, ...]]:
    recipes: dict[Path, list[Variant]] = {}
    for variant in variants:
        recipes.setdefault(variant.loaded.path, []).append(variant)
    return {recipe: tuple(own) for recipe, own in recipes.items()}


def _by_variant(locks: Mapping[Path, Found]) -> dict[str, Lock]:
    return {variant.name: found.lock for found in locks.values() for variant in found.variants}
