"""Watched files: the names of files and their stat rows, in parts that several processes compare."""

# An up-to-date build imports this module, so the module imports as little as `engine.snapshot`.

from __future__ import annotations

import marshal
import os
from _operator import attrgetter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    Row = tuple[int, ...]
    """A stat row: the fields that `stat_fields` names."""
    Part = tuple[str, str, bytes]
    """A folder, the names of files relative to the folder, and the packed stat rows of the files."""

_PART = 1024
"""The number of files in a part of a snapshot: several processes compare the parts.

Comparing the stat rows of a part with so many files takes longer than starting a process.
"""
stat_fields = attrgetter("st_dev", "st_ino", "st_size", "st_mtime_ns", "st_ctime_ns")
"""A function that returns the stat row for an `os.stat` result; a file that changes gets another stat row."""


def packed(rows: Mapping[str, Row]) -> list[Part]:
    """Return the names and stat rows of files in parts of `_PART` files, as text and bytes that compare fast.

    The names of a part are relative to a folder that the files share, because the system follows short paths faster.
    """
    names = sorted(rows)
    parts = [names[start : start + _PART] for start in range(0, len(names), _PART)]
    return [_part(part, _bytes_of(rows[name] for name in part)) for part in parts]


def _part(names: Sequence[str], rows: bytes) -> Part:
    common = os.path.commonprefix([names[0], names[-1]])  # noqa: RUF071 - sorted names, cut at a slash below
    folder = common[: common.rfind("/") + 1] if common.startswith("/") else ""
    return folder, "\0".join(name[len(folder) :] for name in names), rows


def edited(watched: Sequence[Part], dropped: Collection[str], put: Mapping[str, Row]) -> list[Part]:
    """Return the parts without the files `dropped`, and with the stat rows `put` of new and changed files."""
    left = dict(put)
    parts = []
    for part in watched:
        if not any(may_hold(part, name) for name in (*dropped, *put)):
            parts.append(part)
            continue
        kept = {name: left.pop(name, row) for name, row in unpacked(*part) if name not in dropped or name in put}
        parts += packed(kept)
    return parts + packed(left)


def may_hold(part: Part, name: str) -> bool:
    """Say whether a part may have a row of the file `name`; False only if the part has none."""
    folder, names, _ = part
    return name.startswith(folder) and name[len(folder) :] in names


def unpacked(folder: str, names: str, rows: bytes) -> Iterable[tuple[str, Row]]:
    """Return each name of a part with its stat row."""
    paths = (folder + name for name in names.split("\0"))
    return zip(paths, marshal.loads(rows), strict=True)  # noqa: S302 - from a snapshot, whose seal fits


def row_of(name: str) -> Row | None:
    """Return the stat row of a file; None for a missing file."""
    try:
        row: Row = stat_fields(os.stat(name))
    except OSError:
        return None
    return row


def changed(watched: Sequence[Part]) -> list[str]:
    """Return the names of the files whose stat rows have changed; a process for each CPU compares some of the parts."""
    hands = min(cpu_count(), len(watched))
    helpers = []
    for hand in range(1, hands):
        reading, writing = os.pipe()
        helper = os.fork()
        if helper == 0:
            try:
                os.write(writing, marshal.dumps(_differing(watched, hand, hands)))
            finally:
                os._exit(0)  # without an answer, the snapshot counts as unreadable
        os.close(writing)
        helpers.append((helper, reading))
    parts = _differing(watched, 0, max(hands, 1))
    for helper, reading in helpers:
        with open(reading, "rb") as answers:
            parts += marshal.loads(answers.read())  # noqa: S302 - written by the process that was forked above
        os.waitpid(helper, 0)
    return [name for part in parts for name, row in unpacked(*watched[part]) if row_of(name) != row]


def cpu_count() -> int:
    """Return how many CPUs this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _differing(watched: Sequence[Part], first: int, step: int) -> list[int]:
    """Return the numbers of the parts in which a stat row differs, of every part number `first`, `first + step`, ..."""
    home = os.open(".", getattr(os, "O_PATH", os.O_RDONLY))
    try:
        return [part for part in range(first, len(watched), step) if not _is_unchanged(home, *watched[part])]
    finally:
        os.fchdir(home)
        os.close(home)


def _is_unchanged(home: int, folder: str, names: str, rows: bytes) -> bool:
    try:
        os.chdir(folder or home)
        return _bytes_of(map(stat_fields, map(os.stat, names.split("\0")))) == rows
    except OSError:
        return False


def _bytes_of(rows: Iterable[Row]) -> bytes:
    # Version 2 of marshal has no references, so equal rows always give equal bytes.
    return marshal.dumps([*rows], 2)
