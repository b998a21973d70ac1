"""Which code an installed tool has: the code that its name and version promise, or other code, known by its content."""

from __future__ import annotations

import base64
import hashlib
import marshal
import os
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from engine import digest
from engine.digest import Digest
from engine.machine import imports, tool_files
from engine.machine.tool_files import ToolFiles, Wheel, wheel_of
from engine.store.notes import Notes
from engine.store.stat_cache import is_moved, settled_row
from engine.system import regular
from engine.system.file_systems import mounted, tells_changes, write_back
from engine.system.watched import row_of
from engine.text import lists

_KIND = "tools"
_LISTED = 1
"""The largest number of changed files that a reason names."""
_SHOWN = 16
"""The number of hexadecimal digits that a row shows of the digest of a tool's content."""


StatRows = list[tuple[int, ...] | None]
_WRITTEN = 4
"""The number of fields of a stat row that only a write changes: device, inode, size and modification time."""


@dataclass
class ToolContent:
    """The code of an installed tool; without arguments, of a tool that is no installed distribution."""

    other: str = ""
    """A digest of the tool's code, if the code may differ from what the tool's name and version promise; else empty."""
    reason: str = ""
    """Why the code may differ, for example the name of a changed file."""
    watched: tuple[str, ...] = ()
    """The files and folders on which the digest depends."""
    rows: StatRows = field(default_factory=list)
    """The stat rows of the watched files and folders when the code was last seen to be this code."""
    differing: Mapping[str, str] = field(default_factory=dict)
    """The checksums of the files whose content is not the content that RECORD lists."""
    wheel: Wheel | None = None

    def changed_file(self) -> Path | None:
        """Return a file of the tool that changed after the tool's code was read; None if none changed.

        A file counts as unchanged if only its change time is another one and its content is the same: another
        installation may have made a hard link to the file. A folder counts as unchanged if it has the same modules and
        was not moved: Python may have written compiled modules.
        """
        rows = _stat_rows(self.watched)
        if self.wheel is None or rows == self.rows:
            return None
        tool = tool_files.files_of(self.wheel)
        names = {path: name for name, path in tool.files.items()}
        other_modules = names.keys() - set(self.watched)
        if other_modules:
            return Path(min(other_modules))
        for path, before, now in zip(self.watched, self.rows, rows, strict=True):
            if before and now and before != now and os.path.isdir(path):
                if is_moved(before, now):
                    return Path(path)
            elif before != now:
                is_written = before is None or now is None or before[:_WRITTEN] != now[:_WRITTEN]
                expected = self.differing.get(names.get(path, ""), tool.expected.get(names.get(path, "")))
                if is_written or (path in names and _checksum(path) != expected):
                    return Path(path)
        self.rows = rows
        return None


def content_of(distribution: metadata.Distribution, notes: Notes, *, afresh: bool = False) -> ToolContent:
    """Return the code of an installed distribution, which is compared with RECORD once and then known by stat rows.

    If `afresh` is true, it is compared whatever earlier builds remembered.
    """
    wheel = wheel_of(distribution)
    if wheel is None:
        return ToolContent()
    name = digest.of_bytes(str(wheel.info).encode("utf-8", "surrogateescape"))
    note = {} if afresh else notes.get(_KIND, name)
    return _remembered(note, wheel) or _read(name, wheel, note, notes)


def _remembered(note: Mapping[str, Any], wheel: Wheel) -> ToolContent | None:
    try:
        watched = tuple(note["watched"].split("\0"))
        rows = _stat_rows(watched)
        now = (_digest_of(rows), _places(note["places"]), _mounts(watched[:1]))
        if now != (note["rows"], note["places"], note["mounts"]):
            return None
        return ToolContent(note["other"], note["reason"], watched, rows, note["differing"], wheel)
    except (KeyError, AttributeError, TypeError):
        return None


def _read(name: str, wheel: Wheel, note: Mapping[str, Any], notes: Notes) -> ToolContent:
    places = _places(wheel.packages())
    tool = tool_files.files_of(wheel)
    watched = tuple(dict.fromkeys((*tool.folders, *tool.files.values())))
    rows = _settled(watched)
    subject, mounts = _subject(tool), _mounts(watched[:1])
    # The entries of a folder change often, for example when Python compiles modules; the files rarely change.
    is_known = note.get("subject") == subject and note.get("mounts") == mounts
    tells = all(map(tells_changes, tool.folders)) and (is_known or all(map(_written_back, tool.files.values())))
    differing = note["differing"] if is_known else _differing(tool)
    content = ToolContent(*_verdict(tool, differing), watched, rows, differing, wheel)
    if tells and _stat_rows(watched) == rows:
        fields = {"places": places, "other": content.other, "reason": content.reason, "rows": _digest_of(rows)}
        files = {"watched": "\0".join(watched), "subject": subject, "mounts": mounts, "differing": differing}
        notes.keep(_KIND, name, {**fields, **files})
    return content


def _places(packages: Iterable[str]) -> dict[str, str]:
    """Return the places from which Python would import packages now, by the names of the packages."""
    return {package: imports.location(package) or "" for package in packages}


def _verdict(tool: ToolFiles, differing: Mapping[str, str]) -> tuple[str, str]:
    """Return the digest of a tool's code and the reason why the digest is needed; ("", "") if RECORD proves the code.

    `differing` maps the names of the files that RECORD does not list with this content to the files' checksums.
    """
    if not (tool.unverified or differing):
        return "", ""
    contents = {**{name: tool.expected.get(name, "") for name in tool.files}, **differing}
    other = digest.of_rows(sorted((name, checksum) for name, checksum in contents.items() if checksum))
    reason = tool.unverified or tool.moved or f"not as it was installed: {lists.first_of(sorted(differing), _LISTED)}"
    return other[:_SHOWN], reason


def _subject(tool: ToolFiles) -> Digest:
    """Return a digest of all that decides which files of a tool differ from RECORD, with the files' stat rows."""
    rows = ("rows", _digest_of(_stat_rows(sorted(tool.files.values()))))
    return digest.of_rows((*sorted(tool.files.items()), *sorted(tool.expected.items()), rows))


def _differing(tool: ToolFiles) -> dict[str, str]:
    """Return the files with other content than RECORD lists, each with its checksum, which is "" for a missing file."""
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        checksums = dict(zip(tool.files, threads.map(_checksum, tool.files.values()), strict=True))
    checksums |= {name: "" for name in tool.expected if name not in checksums}
    return {name: each for name, each in checksums.items() if each != tool.expected.get(name) or not each}


def _mounts(paths: Sequence[str]) -> list[str | None]:
    """Return a text for each path that another mount of the path's file system changes."""
    return [mounted(os.stat(path).st_dev) for path in paths]


def _written_back(path: str) -> bool:
    try:
        return not os.path.isfile(path) or write_back(path)
    except OSError:
        return False


def _checksum(path: str) -> str:
    """Return the SHA-256 of a file's content as RECORD writes it; empty for a missing file."""
    try:
        with regular.open_file(path) as file:
            content = hashlib.file_digest(file, "sha256").digest()
    except OSError:
        return ""
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def _settled(paths: Sequence[str]) -> StatRows:
    """Return the stat rows of files, after waiting until any further change would change a row."""
    rows = zip(_stat_rows(paths), paths, strict=True)
    changes = [(row[4], path) for row, path in rows if row is not None]
    if changes:
        settled_row(max(changes)[1])
    return _stat_rows(paths)


def _stat_rows(paths: Iterable[str]) -> StatRows:
    """Return the stat row of each file and folder, or None for a missing one."""
    return [*map(row_of, paths)]


def _digest_of(rows: StatRows) -> Digest:
    return digest.of_bytes(marshal.dumps(rows, 2))
