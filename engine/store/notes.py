"""Notes, which explain or save time, and kept files of steps, such as TensorRT's timing cache: no result needs them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine import digest
from engine.errors import StoreError
from engine.key import Key
from engine.store.sealed import sealed, sealed_bytes, unsealed, unsealed_bytes
from engine.system import regular, watched

if TYPE_CHECKING:
    from engine.system.watched import Row

KINDS = ("heads", "stat", "resolutions", "pushed", "history", "releases")
"""The folders of notes: last builds, digests by stat row, commits of a hub, what remotes have, earlier builds, and
published packages."""
KEPT = "kept"
"""The folder of kept files."""


class Notes:
    """The notes and kept files of a store. A damaged one counts as missing."""

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
        """Return a note. Raises OSError, and ValueError for one that is damaged or was written for another name."""
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

    def lend(self, name: str | None, target: Path) -> None:
        """Copy the kept file `name` to `target`, if the kept file exists and is undamaged."""
        if name is None:
            return
        path = self.root / KEPT / name
        with contextlib.suppress(OSError, ValueError):
            target.write_bytes(read_kept(path))
            os.utime(path)  # the time of the last use

    def take(self, name: str | None, source: Path) -> None:
        """Copy the file that a job left at `source` to the kept files; do nothing if there is no file."""
        if name is None or not source.is_file():
            return
        with contextlib.suppress(OSError):  # a kept file only saves time
            (self.root / KEPT).mkdir(exist_ok=True)
            self._write(self.root / KEPT / name, sealed_bytes(regular.read(source)))


def kept_name(step: str, kept_by: Sequence[str], key: Key) -> str | None:
    """Return the name of the kept file of the step `step` for a key; None for a step that keeps none.

    `kept_by` is the step's attribute of that name: the names of the rows of the key that name the kept file.
    """
    rows = [(row, key[row]) for row in kept_by if row in key]
    if not kept_by or len(rows) < len(kept_by):
        return None
    return digest.of_rows([("step", step), *rows])


def read_kept(path: Path) -> memoryview:
    """Return the content of a kept file. Raises OSError, and ValueError for a damaged one."""
    return unsealed_bytes(regular.read(path))
