"""Watched files: the names of files and their stat rows, packed so that one comparison finds any change."""

# An up-to-date build imports this module, so the module imports as little as `engine.snapshot`.

from __future__ import annotations

import marshal
import os
from _operator import attrgetter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    Row = tuple[int, ...]
    """A stat row: the fields that `stat_fields` names."""

stat_fields = attrgetter("st_dev", "st_ino", "st_size", "st_mtime_ns", "st_ctime_ns")
"""A function that returns the stat row for an `os.stat` result; a file that changes gets another stat row."""


def row_of(name: str) -> Row | None:
    """Return the stat row of a file; None for a missing file."""
    try:
        row: Row = stat_fields(os.stat(name))
    except OSError:
        return None
    return row


def packed(rows: Mapping[str, Row]) -> tuple[list[str], bytes]:
    """Return the names of files, and their stat rows as bytes that compare fast."""
    return list(rows), _bytes_of(rows.values())


def unpacked(names: list[str], rows: bytes) -> dict[str, Row]:
    """Return the stat row of each file."""
    return dict(zip(names, marshal.loads(rows), strict=True))  # noqa: S302 - from a snapshot, whose seal fits


def changed(names: list[str], rows: bytes) -> list[str]:
    """Return the names of the files whose stat rows have changed."""
    try:
        if _bytes_of(map(stat_fields, map(os.stat, names))) == rows:
            return []
    except OSError:
        pass  # a file is missing
    return [name for name, row in unpacked(names, rows).items() if row_of(name) != row]


def _bytes_of(rows: Iterable[Row]) -> bytes:
    # Version 2 of marshal has no references, so equal rows always give equal bytes.
    return marshal.dumps([*rows], 2)
