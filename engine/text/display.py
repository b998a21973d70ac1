"""Texts of users and of other programs, short and safe to show: on one line, cut, without unprintable characters."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

_COLUMNS = 60
"""Upper limit of the number of characters of a text that an error message shows: half a line of a terminal."""
_PATH_COLUMNS = 200
"""The largest number of characters of a path that an error shows."""
MOST_OF_ERROR = 300
"""The largest number of characters that a report or a log shows of another program's error."""
_CUT = "..."
"""The end of a shortened text."""


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
    """Return a path as text for a terminal, cut later than other texts: the end of a path matters most."""
    return shown(path, _PATH_COLUMNS)


def reason_of(error: OSError | ValueError) -> str:
    """Return the operating system's reason for a failed access to a file, in lower case."""
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return (reason or "unknown reason").lower()


def one_line(text: str, most: int) -> str:
    """Return a text on one line, with single spaces; a longer text is cut to `most` characters and ends with "..."."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - len(_CUT)]}{_CUT}"


def has_surrogates(text: str) -> bool:
    """Tell whether a text holds half a character: a lone surrogate (U+D800 to U+DFFF), which UTF-8 cannot encode."""
    return any("\ud800" <= letter <= "\udfff" for letter in text)
