"""Digests of files that did not change since they were last read, known by their stat row."""

from __future__ import annotations

import os
import time
from pathlib import Path

from engine import digest
from engine.digest import Digest
from engine.store.file_systems import tells_changes
from engine.store.notes import Notes

TICK_NS = 20_000_000
"""Two writes within one tick of the kernel's clock may leave the same time stamp (Linux: 4-10 ms, by CONFIG_HZ)."""
COARSE_NS = 2_000_000_000
"""Where time stamps have no fraction of a second: the coarsest in use are FAT's, of two seconds."""
_MOST = 200_000
"""Files remembered before those that this build did not meet are forgotten."""

Row = tuple[int, int, int, int, int]
"""Device, inode, size in bytes, modification and change time in ns."""


class StatCache:
    """Remembers inode -> (stat row, digest) in the store's notes, between builds.

    The rule is that of git's index for files that are "racily clean", on the change time, which no program can set:
    a file that was hashed within a tick of its last change may have changed again unseen, and is not remembered.
    Nothing is remembered of file systems that may not tell of every change.
    """

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._known: dict[str, list[int | str]] | None = None
        self._met: set[str] = set()
        self._forgotten: set[str] = set()
        self._changed = False

    def digest(self, path: str | Path) -> Digest:
        """Return the digest of a file's content, read only where its stat row is new. Raises OSError."""
        row = stat_row(path)
        known = self.known(row)
        if known is not None:
            return known
        started = time.time_ns()
        content = digest.of_file(path)
        if is_settled(row, started) and stat_row(path) == row and tells_changes(path):
            self._remember(row, content)
        return content

    def known(self, row: Row) -> Digest | None:
        """Return the content of the file with this row, None where it must be read."""
        name = f"{row[0]}:{row[1]}"
        found = self._entries().get(name)
        if found is None or tuple(found[:3]) != row[2:]:
            return None
        self._met.add(name)
        return Digest(str(found[3]))

    def forget(self, row: Row) -> None:
        """Forget a file that is not what its row promised."""
        name = f"{row[0]}:{row[1]}"
        self._forgotten.add(name)
        self._changed |= self._entries().pop(name, None) is not None

    def save(self) -> None:
        """Keep what was learned for the next build, beside what others learned meanwhile."""
        if not self._changed or self._known is None:
            return
        others = {k: v for k, v in self._notes.get("stat", "files").items() if k not in self._forgotten}
        merged = {**others, **self._known}
        if len(merged) > _MOST:
            merged = {name: entry for name, entry in merged.items() if name in self._met}
        self._notes.keep("stat", "files", merged)
        self._changed = False

    def _remember(self, row: Row, content: Digest) -> None:
        name = f"{row[0]}:{row[1]}"
        self._entries()[name] = [*row[2:], content]
        self._met.add(name)
        self._changed = True

    def _entries(self) -> dict[str, list[int | str]]:
        if self._known is None:
            self._known = self._notes.get("stat", "files")
        return self._known


def stat_row(path: str | Path) -> Row:
    """Return what changes when a file does. Raises OSError."""
    return row_of(os.stat(path))


def row_of(found: os.stat_result) -> Row:
    """Return the row of a file that was looked at before."""
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def settled_row(path: str | Path) -> Row:
    """Return a file's row, but of one that changed just now only when a further change would show. Raises OSError."""
    row = stat_row(path)
    now = time.time_ns()
    # Of a time that is yet to come there is nothing to wait for: somebody has set the clock back.
    if row[4] <= now and not is_settled(row, now):
        time.sleep((TICK_NS if row[4] % 1_000_000_000 else COARSE_NS) / 1e9)
        return stat_row(path)
    return row


def is_settled(row: Row, at_ns: int) -> bool:
    """Say whether a change after `at_ns` would show in the change time."""
    changed = row[4]
    return at_ns - changed > (TICK_NS if changed % 1_000_000_000 else COARSE_NS)
