"""The packages that were published from a store: a note for each, so that collections keep its record."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from engine.digest import Digest

if TYPE_CHECKING:
    from engine.store.remote.statement import StoredFile
    from engine.store.store import Store

KIND = "releases"


class Release(NamedTuple):
    """A published package: the SHA-256 of its files, the digest of its key, and the recipe that it was built from."""

    sha256: str
    key: Digest
    recipe: str
    refused: str = ""
    """Why what a remote has under this SHA-256 is not used; its key and recipe are then unknown."""

    def matches(self, digits: str) -> bool:
        """Say whether the SHA-256 or the key begins with these digits."""
        return self.sha256.startswith(digits) or self.key.startswith(digits)


def sha256_of(digests: Mapping[str, str]) -> str:
    """Return the SHA-256 of the lines that `sha256sum` prints for a package's files, sorted by name as bytes."""
    lines = "".join(f"{digests[name]}  {name}\n" for name in sorted(digests, key=str.encode))
    return hashlib.sha256(lines.encode()).hexdigest()


def package_of(files: Mapping[str, StoredFile]) -> str:
    """Return the SHA-256 of the package of an artifact; the files beside its models are no part of it."""
    return sha256_of({name: file.sha256 for name, file in files.items() if "/" in name})


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
