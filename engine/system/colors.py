"""Colours on the standard streams: used on a terminal only, unless the option --color or a variable says otherwise."""

# The program imports this module only where a command line has --color, or where coloured text is printed.

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal, TextIO

    Style = Literal["bold red", "red", "green", "yellow", "cyan", "dim"]

OPTION = "--color"
CHOICES = ("auto", "always", "never")
_CODES = {"bold red": "1;31", "red": "31", "green": "32", "yellow": "33", "cyan": "36", "dim": "2"}
_OFF, _ON = "NO_COLOR", "FORCE_COLOR"
"""The variables that many programs, among them rich, obey: https://no-color.org and https://force-color.org."""


def take(words: Sequence[str]) -> list[str]:
    """Return a command line without the option --color, and let the option decide for the standard streams.

    A wrong value stays in the command line, so that the parser refuses it.
    """
    kept: list[str] = []
    rest = iter(words)
    for word in rest:
        name, equals, value = word.partition("=")
        if name != OPTION:
            kept.append(word)
            continue
        if not equals:
            value = next(rest, "")
        if value in CHOICES[1:]:
            os.environ.pop(_OFF, None)
            os.environ.pop(_ON, None)
            os.environ[_ON if value == "always" else _OFF] = "1"
        elif value not in CHOICES:
            kept += [OPTION, value] if value else [OPTION]
    return kept


def are_on(stream: TextIO) -> bool:
    """Tell whether text for a stream is coloured."""
    if os.environ.get(_OFF):
        return False
    if os.environ.get(_ON):
        return True
    return os.environ.get("TERM") != "dumb" and stream.isatty()


def paint(text: str, style: Style, stream: TextIO) -> str:
    """Return a text with the codes of a style, or as it is where the stream has no colours."""
    return f"\033[{_CODES[style]}m{text}\033[0m" if text and are_on(stream) else text


def error(text: str, stream: TextIO) -> str:
    """Return the text of an error: the word `error:` and the lines with hints are coloured."""
    if not are_on(stream):
        return text
    return "\n".join(_error_line(line, stream) for line in text.split("\n"))


def _error_line(line: str, stream: TextIO) -> str:
    for word, style in _WORDS.items():
        start, is_there, rest = line.partition(word)
        if is_there and not start.strip():
            return f"{start}{paint(word, style, stream)}{rest}"
    return line


_WORDS: dict[str, Style] = {"error:": "bold red", "hint:": "cyan", "note:": "yellow", "warning:": "yellow"}
"""Words at the start of a line -> their style."""
