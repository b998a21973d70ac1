"""Lines: a long text on one short line, and texts that UTF-8 cannot encode."""

from __future__ import annotations

ERROR = 300
"""The largest number of characters that a report or a log shows of another program's error."""
_CUT = "..."
"""The end of a shortened text."""


def one_line(text: str, most: int) -> str:
    """Return a text on one line, with single spaces; a longer text is cut to `most` characters and ends with "..."."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - len(_CUT)]}{_CUT}"


def has_surrogates(text: str) -> bool:
    """Tell whether a text holds half a character: a lone surrogate (U+D800 to U+DFFF), which UTF-8 cannot encode."""
    return any("\ud800" <= letter <= "\udfff" for letter in text)
