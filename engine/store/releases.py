"""The packages that were published from a store: a note for each, so that collections keep its record."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from engine.digest import Digest

if TYPE_CHECKING:
    from engine.store.store import Store

KIND = "releases"


class Release(NamedTuple):
    """A published package: the SHA-256 of its files, the digest of its key, and the recipe that it was built from."""

    sha256: str
    key: Digest
    recipe: str

    def matches(self, digits: str) -> bool:
        """Say whether the SHA-256 or the key begins with these digits."""
        return self.sha256.startswith(digits) or self.key.startswith(digits)


def keep(store: Store, release: Release) -> bool:
    """Note a release; return False where the store cannot be written. The record is named as in use before."""
    store.notes.keep(KIND, release.sha256, {"key": release.key, "recipe": release.recipe})
    return release in every(store)


def every(store: Store) -> list[Release]:
    """Return the releases of a store, by SHA-256."""
    notes = store.notes.every(KIND)
    return [Release(sha256, Digest(str(note["key"])), str(note["recipe"])) for sha256, note in notes]


def forget(store: Store, release: Release) -> None:
    """Remove the note of a release: a later collection may remove its record. Raises OSError."""
    store.notes.path(KIND, release.sha256).unlink(missing_ok=True)
