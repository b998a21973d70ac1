"""Reads a recipe file of limited size, and makes texts of users safe to show in errors."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from pathlib import Path

from engine.errors import RecipeError
from engine.system.regular import NotRegularError, open_file
from engine.text import sizes, suggestions
from engine.text.places import Position, Text

MAX_BYTES = sizes.MIB
"""The largest recipe file in bytes: 1 MiB. Hand-written recipes have a few KiB."""
_MOST_NAMES = 10_000
"""The largest number of file names in a folder that are compared with the name of a missing file."""
_ALIKE = 0.5
"""The least similarity, from 0 to 1, between a missing file's name and a name that a hint offers.

The lowest similarity of file names is low because long file names often differ in a whole word.
"""

_COLUMNS = 60
"""Upper limit of the number of characters of a text that an error message shows: half a line of a terminal."""
_PATH_COLUMNS = 200
"""The largest number of characters of a path that an error shows."""


def shown(value: object, limit: int = _COLUMNS) -> str:
    """Return a value as text for a terminal: unprintable characters are replaced, and the text is cut at `limit`."""
    text = str(value)
    clean = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text[:limit])
    return clean + "…" if len(text) > limit else clean


def described(value: object) -> str:
    """Return a short description of a value for an error: `a list of 3`, `the text 'tiny'`, `true`."""
    if isinstance(value, Mapping):
        return "a mapping" if value else "an empty mapping"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}" if value else "an empty list"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    return f"the text {shown(value)!r}" if isinstance(value, str) else str(value)


def shown_path(path: Path) -> str:
    """Return a path as text for a terminal.

    Paths are cut after 200 characters and other texts after 60, because the end of a path matters most.
    """
    return shown(path, _PATH_COLUMNS)


def reason_of(error: OSError | ValueError) -> str:
    """Return the operating system's reason for a failed access to a file, in lower case."""
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return (reason or "unknown reason").lower()


def read(path: Path, name: str) -> Text:
    """Read a recipe file of at most 1 MiB in UTF-8, without a byte order mark at the start.

    Raises RecipeError where the file is too large, unreadable, or no regular file. A named pipe is an error, too,
    because a read from a pipe would wait for a writer.
    """
    return _decoded(_bytes_of(path, name), name)


def _bytes_of(path: Path, name: str) -> bytes:
    try:
        with io.BufferedReader(open_file(path)) as file:
            data = file.read(MAX_BYTES + 1)
            size = max(os.fstat(file.fileno()).st_size, len(data))
    except NotRegularError as error:
        raise _whole_file(name, f"{name} is {error.kind}; a recipe is a YAML file") from None
    except (OSError, ValueError) as error:
        raise _unreadable(path, name, error) from None
    if size > MAX_BYTES:
        what = f"the file has {size:,} bytes; a recipe has at most {MAX_BYTES:,}"
        raise _whole_file(name, what, hint="is this a recipe? Data belongs into a file that the recipe names")
    return data


def _decoded(data: bytes, name: str) -> Text:
    try:
        content = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise not_utf8(data, name, error, kind="file", hint="save it as UTF-8") from None
    return Text(name, content.removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}"))


def not_utf8(data: bytes, name: str, error: UnicodeDecodeError, *, kind: str, hint: str) -> RecipeError:
    """Return the error for a file whose bytes are not UTF-8, at the place of the first wrong byte."""
    what = f"the {kind} is not UTF-8: byte 0x{data[error.start]:02x} at offset {error.start}"
    return RecipeError(what, Text(name, data[: error.start].decode("utf-8")).position(error.start), hint=hint)


def _unreadable(path: Path, name: str, error: OSError | ValueError) -> RecipeError:
    if isinstance(error, FileNotFoundError):
        return _whole_file(name, f"there is no file {name}", hint=near_names(path))
    return _whole_file(name, f"{name} cannot be read: {reason_of(error)}")


def _whole_file(name: str, what: str, hint: str = "") -> RecipeError:
    return RecipeError(what, Position(Text(name, ""), 1, 1), hint=hint)


def near_names(path: Path) -> str:
    """Return the hint for a missing file: similar names in the same folder, or the missing folder."""
    folder = path.parent
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry, _ in zip(entries, range(_MOST_NAMES), strict=False)]
    except (OSError, ValueError):
        missing = next((parent for parent in folder.parents if parent.is_dir()), folder)
        return f"there is no folder {shown_path(folder)}; {shown_path(missing)} exists"
    near = suggestions.nearest(path.name, names, count=3, least=_ALIKE)
    if near:
        return suggestions.did_you_mean(*map(shown, near))
    return f"{shown_path(folder)} holds no name like it"
