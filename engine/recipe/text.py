"""A text that errors point into: read from a file with bounds, shown line by line."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.errors import Position, RecipeError

MAX_BYTES = 1 << 20
"""The largest recipe that is read: 1 MiB."""
_SHOWN_COLUMNS = 160
"""A longer line is cut in errors; a place behind the cut is named, not shown."""

# The line breaks of YAML 1.1, as libyaml counts them.
_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
# What YAML 1.1 (5.1, c-printable) leaves out, and a byte order mark inside the text.
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class Text:
    """What a file says (or the command line), under the name that errors call it by."""

    name: str
    content: str

    def raw_line(self, number: int) -> str:
        """Return line `number`, counted from 1; empty where there is no such line."""
        lines = _BREAK.split(self.content)
        return lines[number - 1] if 0 < number <= len(lines) else ""

    def line(self, number: int) -> str:
        """Return line `number` fit for a terminal, its characters in their columns."""
        return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", self.raw_line(number)).replace("\t", " ")

    def position(self, index: int) -> Position:
        """Return the place of the character at `index`."""
        lines = _BREAK.split(self.content[:index])
        return Position(self.name, len(lines), len(lines[-1]) + 1)

    def refuse_unprintable(self) -> None:
        """Raise RecipeError at the first character that YAML does not allow."""
        if match := _UNPRINTABLE.search(self.content):
            raise self.error(
                f"the unprintable character U+{ord(match[0]):04X}",
                self.position(match.start()),
                hint='remove it, or write it as an escape inside double quotes: "\\x00"',
            )

    def error(self, what: str, position: Position, *, facts: Sequence[str] = (), hint: str = "") -> RecipeError:
        """Return the error at `position` with its line shown, where the place fits on a terminal's line."""
        line = self.line(position.line)
        if position.column > _SHOWN_COLUMNS:
            line = ""
        elif len(line) > _SHOWN_COLUMNS:
            line = line[:_SHOWN_COLUMNS] + "…"
        return RecipeError(what, facts, hint, position=position, source_line=line)


def shown(value: object, limit: int = 60) -> str:
    """Return a text fit for a line of a terminal: unprintable characters replaced, cut after `limit`."""
    text = str(value)
    clean = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text[:limit])
    return clean + "…" if len(text) > limit else clean


Texts = Mapping[str, Text]
"""The texts behind one recipe, by the name that errors call them by."""


def error_in(texts: Texts, what: str, position: Position, *, facts: Sequence[str] = (), hint: str = "") -> RecipeError:
    """Return the error at `position` in whichever of `texts` it lies."""
    text = texts.get(position.file, Text(position.file, ""))
    return text.error(what, position, facts=facts, hint=hint)


def read(path: Path, name: str) -> Text:
    """Read a recipe file of at most 1 MiB of UTF-8; a byte order mark at its start is dropped.

    Anything but a readable regular file raises RecipeError, without waiting for a pipe's writer.
    """
    return _decoded(_bytes_of(path, name), name)


def _bytes_of(path: Path, name: str) -> bytes:
    try:
        # O_NONBLOCK: opening a pipe that nobody writes to would wait for ever.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        raise _unreadable(path, name, error) from None
    try:
        facts = os.fstat(handle)
        if not stat.S_ISREG(facts.st_mode):
            kind = "a directory" if stat.S_ISDIR(facts.st_mode) else "no regular file"
            raise _whole_file(name, f"{name} is {kind}; a recipe is a YAML file")
        if facts.st_size <= MAX_BYTES:
            with open(handle, "rb", closefd=False) as file:
                data = file.read(MAX_BYTES + 1)
        if facts.st_size > MAX_BYTES or len(data) > MAX_BYTES:
            what = f"the file has {max(facts.st_size, MAX_BYTES + 1):,} bytes; a recipe has at most {MAX_BYTES:,}"
            raise _whole_file(name, what, hint="is this a recipe? Data belongs into a file that the recipe names")
    except OSError as error:
        raise _unreadable(path, name, error) from None
    finally:
        os.close(handle)
    return data


def _decoded(data: bytes, name: str) -> Text:
    try:
        content = data.decode("utf-8")
    except UnicodeDecodeError as error:
        text = Text(name, data[: error.start].decode("utf-8"))
        raise text.error(
            f"the file is not UTF-8: byte 0x{data[error.start]:02x} at offset {error.start}",
            text.position(error.start),
            hint="save it as UTF-8",
        ) from None
    return Text(name, content.removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}"))


def _unreadable(path: Path, name: str, error: OSError | ValueError) -> RecipeError:
    if isinstance(error, FileNotFoundError):
        return _whole_file(name, f"there is no file {name}", hint=near_names(path))
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return _whole_file(name, f"{name} cannot be read: {(reason or 'unknown reason').lower()}")


def _whole_file(name: str, what: str, hint: str = "") -> RecipeError:
    return RecipeError(what, (), hint, position=Position(name, 1, 1))


def near_names(path: Path) -> str:
    """Return a hint with the names in the folder of `path` that look like its name, or with the folder that lacks."""
    from difflib import get_close_matches

    folder = path.parent
    try:
        with os.scandir(folder) as found:
            names = [entry.name for entry, _ in zip(found, range(10_000), strict=False)]
    except (OSError, ValueError):
        missing = next((parent for parent in folder.parents if parent.is_dir()), folder)
        return f"there is no folder {shown(folder, 200)}; {shown(missing, 200)} exists"
    near = get_close_matches(path.name, names, n=3, cutoff=0.5)
    if near:
        return "did you mean " + " or ".join(shown(name) for name in near) + "?"
    return f"{shown(folder, 200)} holds no name like it"
