"""Notebook: how results of the Python functions are shown at a prompt and in a notebook."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from engine import reporting
from engine.kit.bench.report import BenchReport, BenchRow, place_of


def table(caption: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table as HTML, with the caption above; the cells are plain text."""
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    above = f"<caption>{escape(caption)}</caption>"
    return f"<table>{above}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def latencies(caption: str, bench: BenchReport | None, warnings: Sequence[str]) -> str:
    """Return the latencies of a bench report and their warnings as HTML; without a report the caption and warnings."""
    below = "".join(f"<p>warning: {escape(warning)}</p>" for warning in warnings)
    if bench is None or not bench.rows:
        return f"<p>{escape(caption)}</p>{below}"
    numbers = reporting.numbers(BenchRow)
    header = ("shape", "runtime", *(f"{number.label} {number.unit}".rstrip() for number in numbers.values()))
    return table(caption, header, [tuple(_cells(row, numbers)) for row in bench.rows]) + below


def _cells(row: BenchRow, numbers: dict[str, reporting.Number]) -> Iterator[str]:
    yield from (place_of(row), row.title)
    for name, number in numbers.items():
        value = getattr(row, name)
        yield "" if value is None else number.text(value)
