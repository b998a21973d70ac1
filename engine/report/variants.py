"""Variants: a table with a row for each variant, as aligned text, as Markdown and as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from engine.builder.difference import LatencyVerdict
from engine.report import grid, markdown
from engine.report.overview import VariantOverview
from engine.text import lists, sizes

_NAMED = 3
"""The most variants that a warning names."""
_CSV = (
    "recipe", "variant", "precision", "device", "state", "size_bytes", "cosine", "worst_cosine", "agreement",
    "shape", "p50_ms", "p50_low_ms", "p50_high_ms", "p95_ms", "ratio_to_last", "ratio_low", "ratio_high", "warnings",
)  # fmt: skip


def as_text(overviews: Sequence[VariantOverview]) -> Iterator[str]:
    """Yield the lines of the table; a column without a value is left out."""
    header, rows = _table(overviews)
    right = [grid.RIGHT if _is_number(name) else grid.LEFT for name in header]
    yield from grid.lines([header, *rows], right)
    places = _places(overviews)
    if len(places) == 1:
        yield f"p50 at {places[0]}"
    yield from _warnings(overviews)


def as_markdown(overviews: Sequence[VariantOverview]) -> Iterator[str]:
    """Yield the lines of the table as GitHub and GitLab draw it."""
    header, rows = _table(overviews)
    yield from markdown.table(header, rows, right=[_is_number(name) for name in header])
    places = _places(overviews)
    if len(places) == 1:
        yield ""
        yield f"p50 at {places[0]}."
    for warning in _warnings(overviews):
        yield ""
        yield markdown.escaped(warning)


def as_csv(overviews: Sequence[VariantOverview]) -> Iterator[str]:
    """Yield the lines of the table with all digits, and one row for each measured shape of a variant."""
    page = io.StringIO()
    writer = csv.writer(page, lineterminator="\n")
    writer.writerow(_CSV)
    for each in overviews:
        figures = each.figures
        first = (each.name, each.label, each.precision, each.device, each.state)
        fixed = (*first, figures.size, figures.cosine, figures.worst_cosine, figures.agreement)
        for number, latency in enumerate(figures.latencies or (None,)):
            change = each.change if number == 0 else None
            if change is not None and change.verdict is LatencyVerdict.NOT_COMPARABLE:
                change = None
            measured = () if latency is None else (latency.place, latency.p50_ms, *latency.interval, latency.p95_ms)
            ratios = () if change is None else (round(change.ratio, 4), *(round(end, 4) for end in change.band))
            row = [*fixed, *measured, *ratios]
            writer.writerow([*row, *[""] * (len(_CSV) - len(row) - 1), "; ".join(figures.warnings)])
    yield from page.getvalue().splitlines()


FORMATS: Mapping[str, Callable[[Sequence[VariantOverview]], Iterator[str]]] = {
    "text": as_text,
    "markdown": as_markdown,
    "csv": as_csv,
}


def _warnings(overviews: Sequence[VariantOverview]) -> Iterator[str]:
    """Yield a line for each warning about figures of the table, with the variants that have it."""
    for text in dict.fromkeys(warning for each in overviews for warning in each.figures.warnings):
        names = [each.name for each in overviews if text in each.figures.warnings]
        yield f"warning: {lists.first_of(names, _NAMED)}: {text}"


def _is_number(name: str) -> bool:
    return name not in ("recipe", "state", "shape", "against last build")


def _table(overviews: Sequence[VariantOverview]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return the titles of the columns with a value, and the cells of each row."""
    several = len(_places(overviews)) > 1
    metrics = dict.fromkeys(name for each in overviews for name in each.figures.metrics)
    columns: dict[str, list[str]] = {
        "recipe": [each.name for each in overviews],
        "state": [each.state for each in overviews],
        "size": [_cell(each.figures.size, sizes.decimal) for each in overviews],
        "cosine": [_cell(each.figures.cosine, "{:.4f}".format) for each in overviews],
        "agreement": [_cell(each.figures.agreement, "{:.4f}".format) for each in overviews],
        **{name: [_cell(each.figures.metrics.get(name), "{:.4f}".format) for each in overviews] for name in metrics},
        "shape": [_place(each) if several else "" for each in overviews],
        "p50 ms": [f"{each.figures.latencies[0].p50_ms:.3f}" if each.figures.latencies else "" for each in overviews],
        "against last build": ["" if each.change is None else each.change.in_words() for each in overviews],
    }
    kept = {name: cells for name, cells in columns.items() if any(cells)}
    return tuple(kept), list(zip(*kept.values(), strict=True))


def _cell(value: float | None, text: Callable[[Any], str]) -> str:
    return "" if value is None else text(value)


def _place(each: VariantOverview) -> str:
    return each.figures.latencies[0].place if each.figures.latencies else ""


def _places(overviews: Sequence[VariantOverview]) -> list[str]:
    """Return the places of the latencies that the table shows, each once."""
    return list(dict.fromkeys(place for each in overviews if (place := _place(each))))
