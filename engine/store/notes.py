"""Notes: small files kept between builds that explain or save time, and never change a result."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import StoreError
from engine.store.sealed import sealed, unsealed
from engine.system import regular, watched

if TYPE_CHECKING:
    from engine.system.watched import Row

KINDS = ("heads", "stat", "resolutions", "pushed", "history")
"""The folders of notes: last builds, digests by stat row, commits of a hub, what remotes have, and earlier builds."""


class Notes:
    """The notes of a store. A damaged note counts as a missing note."""

    def __init__(self, root: Path, write: Callable[[Path, bytes], None]) -> None:
        """`root` is the store's folder; `write(path, content)` is a function that replaces a file in one step."""
        self.root = root
        self._write = write
        self._known: dict[tuple[str, str], tuple[Row | None, dict[str, Any]]] = {}
        """The notes that this process has read or written, each with the stat row of its file."""

    def get(self, kind: str, name: str) -> dict[str, Any]:
        """Return a note; {} for a missing or damaged note. A note that has not changed is read only once."""
        row = watched.row_of(str(self.path(kind, name)))
        known = self._known.get((kind, name))
        if known is not None and known[0] == row is not None:
            return known[1]
        try:
            content = self.read(kind, name)
        except (OSError, ValueError):
            return {}
        self._known[kind, name] = row, content
        return content

    def read(self, kind: str, name: str) -> dict[str, Any]:
        """Return a note.

        Raises OSError for a note that cannot be read, and ValueError for a note that is damaged or was written for
        another file name.
        """
        return unsealed(regular.read(self.path(kind, name)), f"{kind}/{name}")

    def every(self, kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the name and the content of each note of the kind `kind`, for example of each head."""
        for path in sorted((self.root / kind).glob("*.json")):
            with contextlib.suppress(OSError, ValueError):
                yield path.stem, self.read(kind, path.stem)

    def keep(self, kind: str, name: str, value: Mapping[str, object]) -> None:
        """Write a note. If the store cannot be written, `keep` does nothing."""
        with contextlib.suppress(OSError, StoreError):
            path = self.path(kind, name)
            self._write(path, sealed(value, f"{kind}/{name}"))
            self._known[kind, name] = watched.row_of(str(path)), dict(value)

    def path(self, kind: str, name: str) -> Path:
        """Return the path of a note."""
        return self.root / kind / f"{name}.json"
