"""The ways to what a running job reads: the links, folders and mounts on them, which must stay as they are."""

# A file that is moved away and back has another change time, so the stat rows of a job's files tell of it. The stat
# row of a file tells nothing of a link or folder above the file, nor of a file system that is mounted over it.

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable

from engine.recipe import ways
from engine.store.stat_cache import Row, is_moved, row_of
from engine.system.file_systems import UNSEEN, MountEvents

_Row = tuple[int, Row]
"""The kind of a file (S_IFMT), and its stat row without following links."""


class InputWays:
    """The ways to some files and folders, as they were when the object was made."""

    def __init__(self, paths: Iterable[str], mounts: MountEvents) -> None:
        """The paths are absolute. `mounts` notes what is mounted and unmounted from now on."""
        self._paths = frozenset(paths)
        self._rows = _rows(self._paths)
        self._mounts, self._count = mounts, mounts.count

    def changed(self) -> str | None:
        """Return a place on the ways that was moved, replaced or mounted over, also if it is there again; else None."""
        noted = ((place, row) for place, row in self._rows.items() if row is None or not stat.S_ISREG(row[0]))
        moved = (place for place, before in noted if _differs(before, _row(place)))
        return next(moved, None) or next(filter(self._holds, self._mounts.after(self._count)), None)

    def _holds(self, mounted: str) -> bool:
        """Say whether a mount at the place `mounted` can hide something that lies at one of the paths."""
        inside = (os.path.join(os.path.realpath(path), "") for path in self._paths)
        return mounted == UNSEEN or mounted in self._rows or os.path.join(mounted, "").startswith(tuple(inside))


def _rows(paths: Collection[str]) -> dict[str, _Row | None]:
    """Return the row of each path, and of every link and folder on the way to it."""
    rows: dict[str, _Row | None] = {}
    for path in (*paths, *dict.fromkeys(map(os.path.dirname, paths))):
        row = rows[path] = _row(path)
        if row is None or not stat.S_ISREG(row[0]):  # the way to a file is the way to its folder
            rows.update({place: _row(place) for place in ways.way_to(path) if place not in rows})
    return rows


def _row(place: str) -> _Row | None:
    """Return the kind and the stat row of what is at a place; None where nothing is."""
    try:
        status = os.lstat(place)
    except OSError:
        return None
    return stat.S_IFMT(status.st_mode), row_of(status)


def _differs(before: _Row | None, now: _Row | None) -> bool:
    """Say whether a link or a folder was moved or replaced."""
    if before is None or now is None or before[0] != now[0]:
        return before != now
    if stat.S_ISDIR(now[0]):
        return is_moved(before[1], now[1])
    return before != now
