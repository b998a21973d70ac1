"""Markdown: tables as GitHub and GitLab draw them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_SPECIAL = re.compile(r"[\\`*\[\]<|~]|(?<!\w)_|_(?!\w)")


def table(header: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[bool] = ()) -> Iterator[str]:
    """Yield the lines of a table; the columns that `right` marks are right-aligned. Cells are plain text."""
    sides = [*right, *[False] * (len(header) - len(right))]
    yield _line(map(escaped, header))
    yield _line("---:" if side else "---" for side in sides)
    yield from (_line(map(escaped, row)) for row in rows)


def _line(cells: Iterator[str]) -> str:
    return f"| {' | '.join(cells)} |"


def escaped(text: str) -> str:
    """Return plain text as Markdown shows it: on one line, and without a meaning of its characters."""
    return _SPECIAL.sub(lambda match: f"\\{match.group()}", " ".join(text.split()))
