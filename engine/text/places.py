"""The texts that error messages refer to, and places in the texts."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

_SHOWN_COLUMNS = 160
"""The most characters of a line that an error shows; for a place behind them it shows no line."""

# The line breaks of YAML 1.1, as libyaml counts them.
_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
# The characters that are excluded are few. A pattern of all that are allowed takes thirty times as long to compile.
UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufeff\ufffe\uffff]")
"""The characters that YAML 1.1 (5.1, c-printable) excludes, and a byte order mark in a text."""


class Text(NamedTuple):
    """The content of a file, or arguments of the command line, under the name that errors use for it."""

    name: str
    content: str

    def __repr__(self) -> str:
        return f"Text({self.name!r})"

    def raw_line(self, number: int) -> str:
        """Return line `number`, counted from 1; empty where the text has no line `number`."""
        lines = _BREAK.split(self.content)
        return lines[number - 1] if 0 < number <= len(lines) else ""

    def line(self, number: int) -> str:
        """Return line `number` for a terminal: unprintable characters are replaced, and each tab becomes one space."""
        return UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", self.raw_line(number)).replace("\t", " ")

    def position(self, index: int) -> Position:
        """Return the place of the character at `index` in the text."""
        lines = _BREAK.split(self.content[:index])
        return Position(self, len(lines), len(lines[-1]) + 1)

    def marked(self, mark: Any) -> Position:
        """Return the place of a PyYAML mark (`yaml.Mark`), or the start of the text for None."""
        return Position(self, mark.line + 1, mark.column + 1) if mark else Position(self, 1, 1)


class Position(NamedTuple):
    """A place in a text. `line` and `column` count from 1. All places in a text share one Text object."""

    text: Text
    line: int
    column: int

    @property
    def file(self) -> str:
        """The name of the text: a path, or an option of the command line."""
        return self.text.name

    @property
    def shown_line(self) -> str:
        """The line as an error shows it: its first 160 characters, or nothing where the place is beyond column 160."""
        if self.column > _SHOWN_COLUMNS:
            return ""
        line = self.text.line(self.line)
        return line if len(line) <= _SHOWN_COLUMNS else line[:_SHOWN_COLUMNS] + "…"

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"
