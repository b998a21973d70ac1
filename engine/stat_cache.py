"""Digests of files that did not change since they were last read, known by their stat row."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from engine import digest
from engine.digest import Digest
from engine.store import Store

GRANULARITY_NS = 2_000_000_000
"""A file younger than this when it was read may change again with an equal stat row: it is not remembered.

The coarsest time stamps in use are FAT's, of two seconds.
"""


class StatCache:
    """Remembers (device, inode, size, mtime, ctime) -> digest in the store, between builds."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, Any] = store.note("stat", "files")
        self._changed = False

    def digest(self, path: Path) -> Digest:
        """Return the digest of a file's content, read only where its stat row is new. Raises OSError."""
        name = str(path)
        row = stat_row(path)
        known = self._known.get(name)
        if known is not None and known[:-1] == row:
            return Digest(known[-1])
        started = time.time_ns()
        content = digest.of_file(path)
        if stat_row(path) == row and started - max(row[3], row[4]) > GRANULARITY_NS:
            self._known[name] = [*row, content]
            self._changed = True
        return content

    def save(self) -> None:
        """Keep what was learned for the next build."""
        if self._changed:
            self._store.keep_note("stat", "files", self._known)


def stat_row(path: Path) -> list[int]:
    """Return what changes when a file does: device, inode, size, mtime and ctime in ns. Raises OSError."""
    found = os.stat(path)
    return [found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns]
