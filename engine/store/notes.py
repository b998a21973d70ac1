"""Small facts kept between builds: they speed up or explain, and never decide."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from engine.errors import StoreError
from engine.store.sealed import sealed, unsealed

KINDS = ("heads", "stat", "resolutions")
"""The folders that hold notes: what each recipe's last build was, digests by stat row, commits of moving revisions."""


class Notes:
    """The notes of a store. A damaged one reads as if it were not there."""

    def __init__(self, root: Path, write: Callable[[Path, bytes], None]) -> None:
        """Keep notes below `root`; `write` replaces a file in one step."""
        self._root = root
        self._write = write

    def get(self, kind: str, name: str) -> dict[str, Any]:
        """Return a note, {} where there is none."""
        try:
            return self.read(kind, name)
        except (OSError, ValueError):
            return {}

    def read(self, kind: str, name: str) -> dict[str, Any]:
        """Return a note. Raises OSError, ValueError where it is not as it was written, or was written as another."""
        return unsealed(self.path(kind, name).read_bytes(), f"{kind}/{name}")

    def every(self, kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the name and the content of all notes of a kind."""
        for path in sorted((self._root / kind).glob("*.json")):
            yield path.stem, self.get(kind, path.stem)

    def keep(self, kind: str, name: str, value: Mapping[str, object]) -> None:
        """Keep a note until it is replaced. A store that cannot be written keeps none."""
        with contextlib.suppress(OSError, StoreError):
            self._write(self.path(kind, name), sealed(value, f"{kind}/{name}"))

    def drop(self, kind: str, name: str) -> None:
        """Remove a note."""
        with contextlib.suppress(OSError):
            self.path(kind, name).unlink(missing_ok=True)

    def path(self, kind: str, name: str) -> Path:
        """Return where a note lies."""
        return self._root / kind / f"{name}.json"
