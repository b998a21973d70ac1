"""Notes: small files kept between builds that explain or save time, and never change a result."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from engine.errors import StoreError
from engine.store.sealed import sealed, unsealed
from engine.system import regular

KINDS = ("heads", "stat", "resolutions", "tools")
"""The folders of notes: last builds, digests by stat row, commits of revisions on a hub, and the code of tools."""


class Notes:
    """The notes of a store. A damaged note counts as a missing note."""

    def __init__(self, root: Path, write: Callable[[Path, bytes], None]) -> None:
        """`root` is the store's folder; `write(path, content)` is a function that replaces a file in one step."""
        self.root = root
        self._write = write

    def get(self, kind: str, name: str) -> dict[str, Any]:
        """Return a note; {} for a missing or damaged note."""
        try:
            return self.read(kind, name)
        except (OSError, ValueError):
            return {}

    def read(self, kind: str, name: str) -> dict[str, Any]:
        """Return a note.

        Raises OSError for a note that cannot be read, and ValueError for a note that is damaged or was written for
        another file name.
        """
        return unsealed(regular.read(self.path(kind, name)), f"{kind}/{name}")

    def every(self, kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the name and the content of each note of the kind `kind`, for example of each head."""
        for path in sorted((self.root / kind).glob("*.json")):
            yield path.stem, self.get(kind, path.stem)

    def keep(self, kind: str, name: str, value: Mapping[str, object]) -> None:
        """Write a note. If the store cannot be written, `keep` does nothing."""
        with contextlib.suppress(OSError, StoreError):
            self._write(self.path(kind, name), sealed(value, f"{kind}/{name}"))

    def drop(self, kind: str, name: str) -> None:
        """Remove a note."""
        with contextlib.suppress(OSError):
            self.path(kind, name).unlink(missing_ok=True)

    def hold(self, place: str) -> bool:
        """Say whether an absolute path leads into the store of these notes."""
        return place.startswith(f"{self.root}{os.sep}")

    def path(self, kind: str, name: str) -> Path:
        """Return the path of a note."""
        return self.root / kind / f"{name}.json"
