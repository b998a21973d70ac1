"""Mount events: the places at which file systems are mounted and unmounted while a build runs (Linux)."""

from __future__ import annotations

import contextlib
import select
from collections.abc import Sequence

from engine.store.file_systems import table_of

_TABLE = "/proc/self/mountinfo"
UNSEEN = "a mount"
"""Stands for the place of a mount that came and went before this process could look."""


class MountEvents:
    """The places at which something was mounted or unmounted since the object was made.

    The kernel tells when its table of mounts changes: poll(2) of the table returns POLLPRI, see proc(5). A look then
    compares the table with the one before. On a system without such a table, no place is ever noted.
    """

    def __init__(self) -> None:
        self._places: list[str] = []
        self._lines: frozenset[str] = frozenset()
        self._changes: select.epoll | None = None
        with contextlib.suppress(OSError, AttributeError):  # only Linux has the table and `select.epoll`
            self._table = open(_TABLE, encoding="utf-8", errors="surrogateescape")  # noqa: SIM115 - closed by `close`
            self._changes = select.epoll()
            self._changes.register(self._table, select.EPOLLPRI)
            self._lines = self._read()

    @property
    def descriptor(self) -> int | None:
        """A file descriptor that is ready for reading when the table has changed; None without a table."""
        return None if self._changes is None else self._changes.fileno()

    @property
    def count(self) -> int:
        """The number of places that were noted so far."""
        return len(self._places)

    def after(self, count: int) -> Sequence[str]:
        """Return the places that were noted after the first `count`."""
        self.look()
        return self._places[count:]

    def look(self, *, is_changed: bool = False) -> None:
        """Note what has changed. `is_changed` says that the descriptor was ready: the kernel tells each change once."""
        if self._changes is None or not (self._changes.poll(0) or is_changed):
            return
        lines = self._read()
        self._places += table_of("\n".join(lines ^ self._lines)) or [UNSEEN]
        self._lines = lines

    def close(self) -> None:
        """Close the table."""
        if self._changes is not None:
            self._changes.close()
            self._table.close()
            self._changes = None

    def _read(self) -> frozenset[str]:
        self._table.seek(0)
        return frozenset(self._table.read().splitlines())
