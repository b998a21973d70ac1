"""Grid: tables for people, as lines of plain text with aligned columns, laid out by rich."""

from __future__ import annotations

import io
import itertools
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from engine.system import streams

UNLIMITED = 1_000_000_000
"""A width in characters so large that no cell is wrapped."""
KEPT = 80
"""The width in characters of tables that are kept, and printed later on terminals of any width."""
_NARROWEST = 12
"""The width in characters below which the cells of a column are not wrapped."""
_SPECIAL = re.compile(r"[\\`*\[\]<|~]|(?<!\w)_|_(?!\w)")


@dataclass(frozen=True)
class Column:
    """The layout of a column: `right` aligns its cells to the right, `width` is its smallest width in characters.

    On a page that is too narrow, the columns with `spare` are left out, the largest number first.
    """

    right: bool = False
    width: int = 0
    spare: int = 0


LEFT, RIGHT = Column(), Column(right=True)


def lines(
    rows: Sequence[Sequence[str]],
    columns: Sequence[Column] = (),
    *,
    gap: int = 2,
    indent: int = 0,
    width: int | None = None,
) -> list[str]:
    """Return a line for each row of a table, without a frame, colours, or blanks at the end of the line.

    Columns that `columns` does not describe are left-aligned. A row may have fewer cells than the longest row. `gap` is
    the number of blanks between two columns, `indent` the number of blanks before the first column. `width` is the
    width of the page, by default that of the terminal to which standard output leads. On a page that is too narrow,
    spare columns are left out, then the cells of left-aligned columns are wrapped and, if that is not enough, the last
    columns stand in a table of their own below, behind the columns before the first number. Where no terminal is, each
    row is one line, so that `grep` finds each value.
    """
    # `recipe check` and an up-to-date build print no table, and must not wait for the import of rich.
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    if not rows:
        return []
    page = width or streams.columns() or UNLIMITED
    count = max(map(len, rows))
    every = [*columns, *[LEFT] * (count - len(columns))][:count]
    sizes = [
        max(column.width, *(cell_len(row[number]) for row in rows if number < len(row)), 1)
        for number, column in enumerate(every)
    ]
    natural = list(sizes)
    too_wide = indent + sum(sizes) + gap * (count - 1) - page
    spare = max(range(count), key=lambda number: every[number].spare)
    if too_wide > 0 and every[spare].spare:
        fewer = [[*row[:spare], *row[spare + 1 :]] for row in rows]
        return lines(fewer, [*every[:spare], *every[spare + 1 :]], gap=gap, indent=indent, width=page)
    for _ in range(too_wide):
        widest = max((number for number in range(count) if not every[number].right), key=sizes.__getitem__, default=0)
        if every[widest].right or sizes[widest] <= _NARROWEST:
            break
        sizes[widest] -= 1
    else:
        too_wide = 0
    names = next((number for number, column in enumerate(every) if column.right), 1) or 1
    if too_wide > 0 and count > names + 1:
        ends = list(itertools.accumulate(natural, lambda end, size: end + gap + size))
        end = max(names + 1, sum(indent + each <= page for each in ends))
        first, last = [row[:end] for row in rows], [[*row[:names], *row[end:]] for row in rows]
        more = lines(last, [*every[:names], *every[end:]], gap=gap, indent=indent, width=page)
        return [*lines(first, every[:end], gap=gap, indent=indent, width=page), "", *more]
    table = Table.grid(padding=(0, gap, 0, 0), pad_edge=False)
    for column, size in zip(every, sizes, strict=True):
        table.add_column(justify="right" if column.right else "left", width=size, overflow="fold")
    for row in rows:
        # Unlike rich, textwrap also breaks behind hyphens, of which long names have many.
        cells = [
            cell if cell_len(cell) <= size else textwrap.fill(cell, size)
            for cell, size in zip(row, sizes, strict=False)
        ]
        table.add_row(*map(Text, cells))
    text = io.StringIO()
    Console(file=text, width=UNLIMITED, color_system=None, force_terminal=False).print(table)
    return [(" " * indent + line).rstrip() for line in text.getvalue().split("\n")[:-1]]


def show(rows: Sequence[Sequence[str]], columns: Sequence[Column] = (), *, gap: int = 2, indent: int = 0) -> None:
    """Print the rows of a table as aligned lines."""
    for line in lines(rows, columns, gap=gap, indent=indent):
        print(line)


def markdown_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[bool] = ()
) -> Iterator[str]:
    """Yield the lines of a table; the columns that `right` marks are right-aligned. Cells are plain text."""
    sides = [*right, *[False] * (len(header) - len(right))]
    yield _markdown_line(map(escaped_markdown, header))
    yield _markdown_line("---:" if side else "---" for side in sides)
    yield from (_markdown_line(map(escaped_markdown, row)) for row in rows)


def _markdown_line(cells: Iterator[str]) -> str:
    return f"| {' | '.join(cells)} |"


def escaped_markdown(text: str) -> str:
    """Return plain text as Markdown shows it: on one line, and without a meaning of its characters."""
    return _SPECIAL.sub(lambda match: f"\\{match.group()}", " ".join(text.split()))
