"""Digests of files by stat row, so that an unchanged file is not read again."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from engine import digest
from engine.digest import Digest
from engine.store.notes import Notes
from engine.system import regular
from engine.system.file_systems import mounted, tells_changes, write_back
from engine.system.watched import stat_fields

TICK_NS = 20_000_000
"""Two writes within one tick of the kernel's clock may leave the same time stamp (Linux: 4-10 ms, by CONFIG_HZ)."""
COARSE_NS = 2_000_000_000
"""The clock tick in ns for time stamps without a fraction of a second: two seconds as in FAT, the longest in use."""
_MOST = 200_000
"""The largest number of files whose digests are remembered; of more, those that a build did not use are forgotten."""

_PATH = 4
"""The index of a file's path in an entry of the cache; the entry of a stored file has no path."""

Row = tuple[int, int, int, int, int]
"""A stat row: device, inode, size in bytes, modification time in ns and change time in ns."""
row_of: Callable[[os.stat_result], Row] = stat_fields
"""Return the stat row of a file from an `os.stat` result."""


class StatCache:
    """A cache that keeps the stat row and the digest of each file (inode) in the store's notes, between builds.

    The digest of a file that was read within a clock tick of the file's last change is not remembered, because the file
    may change again with the same time stamp. Git has this rule, too, for files that it calls "racily clean". The cache
    compares the change time of a file, because no program can set the change time. If the time stamps of a file system
    may not show every change, the cache remembers no digest of its files. After a file system was mounted again, the
    cache forgets what it knew about the file system, because the disk may be another one.
    """

    def __init__(self, notes: Notes, *, afresh: bool = False) -> None:
        """If `afresh` is true, each file is read once, whatever earlier builds remembered."""
        self.contradicted: list[str] = []
        """The files whose content changed, although their stat rows did not; only known if `afresh` is true."""
        self.afresh = afresh
        self._notes = notes
        self._known: dict[str, list[int | str]] = {}
        self._met: set[str] = set()
        self._forgotten: set[str] = set()
        self._changed = False

    def digest(self, path: str | Path) -> Digest:
        """Return the digest of a file's content; a file with a known stat row is not read. Raises OSError."""
        return self.read(path)[1]

    def read(self, path: str | Path) -> tuple[Row, Digest]:
        """Return a file's stat row and the digest of its content: of one file, whatever the path leads to meanwhile.

        A file with a known stat row is not read. Raises OSError.
        """
        row = stat_row(path)
        known = self.known(row)
        if known is not None:
            return row, known
        started = time.time_ns()
        tells = tells_changes(path) and write_back(path)
        with regular.open_file(path) as file:
            row = row_of(os.fstat(file.fileno()))
            content = digest.of_open(file)
        before = self._earlier.get(inode(row)) if self.afresh else None
        if before is not None and is_about(before, row) and before[3] != content:
            self.contradicted.append(str(path))
            self.forget(row)
        if tells and is_settled(row, started) and stat_row(path) == row:
            absolute = os.path.abspath(path)
            is_stored = absolute.startswith(f"{self._notes.root}{os.sep}")
            self._known[inode(row)] = [*entry(row, content), *(() if is_stored else (absolute,))]
            self._met.add(inode(row))
            self._changed = True
        return row, content

    def known(self, row: Row) -> Digest | None:
        """Return the remembered digest of the file with this stat row; None if no digest is remembered."""
        name = inode(row)
        entry = self._known.get(name) or (None if self.afresh else self._earlier.get(name))
        if entry is None or not is_about(entry, row):
            return None
        self._met.add(name)
        return Digest(str(entry[3]))

    def read_outside(self) -> Iterator[tuple[Path, int, bool]]:
        """Read each remembered file outside the store that has its remembered stat row, and forget changed content.

        Yield the path, the size in bytes, and whether the content is the remembered content.
        """
        for name, entry in list(self._earlier.items()):
            with contextlib.suppress(OSError):
                path = Path(str(entry[_PATH])) if len(entry) > _PATH else None
                row = stat_row(path) if path else None
                if path and row and inode(row) == name and is_about(entry, row):
                    same = digest.of_file(path) == entry[3]
                    if not same:
                        self.forget(row)
                    yield path, row[2], same

    def forget(self, row: Row) -> None:
        """Forget the remembered digest of a file whose content has turned out to be different."""
        name = inode(row)
        self._forgotten.add(name)
        for entries in (self._known, self._earlier):
            self._changed |= entries.pop(name, None) is not None

    def save(self) -> None:
        """Write the remembered digests for the next build; keep the digests that other builds wrote meanwhile."""
        if not self._changed:
            return
        others = {name: entry for name, entry in self._read().items() if name not in self._forgotten}
        merged = {**others, **self._known}
        if len(merged) > _MOST:
            merged = {name: entry for name, entry in merged.items() if name in self._met}
        self._notes.keep("stat", "files", merged)
        devices = {name.partition(":")[0] for name in merged}
        self._notes.keep("stat", "mounts", {device: mounted(int(device)) or "" for device in devices})
        self._changed = False

    @cached_property
    def _earlier(self) -> dict[str, list[int | str]]:
        return self._read()

    def _read(self) -> dict[str, list[int | str]]:
        """Return what earlier builds remembered, without what another mount of a file system made doubtful."""
        entries: dict[str, list[int | str]] = self._notes.get("stat", "files")
        now = {device: (before, mounted(int(device))) for device, before in self._notes.get("stat", "mounts").items()}
        doubtful = {device: pair for device, pair in now.items() if pair[1] is not None and pair[0] != pair[1]}
        if not doubtful:
            return entries
        return {name: entry for name, entry in entries.items() if _survives(name, entry, doubtful)}


def _survives(name: str, entry: Sequence[int | str], doubtful: Mapping[str, tuple[str, str | None]]) -> bool:
    """Say whether a remembered digest stays valid after its file system was mounted again.

    After a restart of the machine, a digest stays valid if the file's change time has a fraction of a second: the clock
    of a kernel set it. The programs that make images of disks write change times in whole seconds.
    """
    before, now = doubtful.get(name.partition(":")[0], ("", ""))
    if before == now:
        return True
    same_boot = before.partition("/")[0] == str(now).partition("/")[0]
    return not same_boot and int(entry[2]) % 1_000_000_000 != 0


def stat_row(path: str | Path) -> Row:
    """Return the stat row of a file. Raises OSError."""
    return row_of(os.stat(path))


def inode(row: Row) -> str:
    """Return the name of a file's inode, "DEVICE:INODE", under which a table of digests has the file."""
    return f"{row[0]}:{row[1]}"


def entry(row: Row, content: str) -> list[int | str]:
    """Return the entry of an inode in a table of digests: size, modification time, change time and digest."""
    return [*row[2:], content]


def is_about(entry: Sequence[int | str] | None, row: Row) -> bool:
    """Say whether an entry of a table of digests was made from a file with the stat row `row`."""
    return entry is not None and tuple(entry[:3]) == row[2:]


def is_moved(before: Sequence[int], now: Sequence[int]) -> bool:
    """Say whether a folder was moved or replaced since it had the row `before`, also if it is at its place again.

    A new or removed entry sets the times of change and of modification to one moment; a move of the folder sets only
    the time of change.
    """
    return before[:2] != now[:2] or (before[4] != now[4] and now[4] != now[3])


def settled_row(path: str | Path) -> Row:
    """Return a file's stat row, after a wait until any change would get another change time. Raises OSError."""
    row = stat_row(path)
    now = time.time_ns()
    # A change time in the future is not waited for: the clock was set back.
    if row[4] <= now and not is_settled(row, now):
        time.sleep((TICK_NS if row[4] % 1_000_000_000 else COARSE_NS) / 1e9)
        return stat_row(path)
    return row


def is_settled(row: Row, at_ns: int) -> bool:
    """Say whether a change of the file after the time `at_ns` would get another change time than the row has."""
    changed = row[4]
    return at_ns - changed > (TICK_NS if changed % 1_000_000_000 else COARSE_NS)
