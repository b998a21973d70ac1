"""Grid: tables for people, as lines of plain text with aligned columns, laid out by rich."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass

_UNLIMITED = 1_000_000_000
"""The width in characters of the page that rich lays out, so large that rich never wraps or cuts a cell."""


@dataclass(frozen=True)
class Column:
    """The layout of a column: `right` aligns its cells to the right, `width` is its smallest width in characters."""

    right: bool = False
    width: int = 0


LEFT, RIGHT = Column(), Column(right=True)


def lines(rows: Sequence[Sequence[str]], columns: Sequence[Column] = (), *, gap: int = 2, indent: int = 0) -> list[str]:
    """Return a line for each row of a table, without a frame, colours, or blanks at the end of the line.

    A cell is never wrapped or cut, however narrow the terminal is, so that `grep` finds each value. Columns that
    `columns` does not describe are left-aligned. A row may have fewer cells than the longest row. `gap` is the number
    of blanks between two columns, `indent` the number of blanks before the first column.
    """
    # `recipe check` and an up-to-date build print no table, and must not wait for the import of rich.
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    if not rows:
        return []
    table = Table.grid(padding=(0, gap, 0, 0), pad_edge=False)
    for number in range(max(map(len, rows))):
        column = columns[number] if number < len(columns) else LEFT
        table.add_column(justify="right" if column.right else "left", min_width=column.width or None, no_wrap=True)
    for row in rows:
        table.add_row(*map(Text, row))
    page = io.StringIO()
    Console(file=page, width=_UNLIMITED, color_system=None, force_terminal=False).print(table)
    return [(" " * indent + line).rstrip() for line in page.getvalue().split("\n")[:-1]]


def show(rows: Sequence[Sequence[str]], columns: Sequence[Column] = (), *, gap: int = 2, indent: int = 0) -> None:
    """Print the rows of a table as aligned lines."""
    for line in lines(rows, columns, gap=gap, indent=indent):
        print(line)
