"""Overview: a few values of each variant, for tables with a row each: its state, its figures, and those of before."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from engine.builder.difference import LatencyChange, LatencyVerdict
from engine.builder.lookup import Lookup
from engine.builder.summary import Summary
from engine.builder.why import Finding
from engine.report import grid
from engine.store import history
from engine.store.history import HeadlineFigures, PastBuild
from engine.text import lists, sizes

_NAMED = 3
"""The most variants that a warning names."""
_CSV = (
    "recipe", "variant", "precision", "device", "state", "size_bytes", "cosine", "worst_cosine", "agreement",
    "shape", "p50_ms", "p50_low_ms", "p50_high_ms", "p95_ms", "ratio_to_last", "ratio_low", "ratio_high", "paused_ms",
    "rows_per_s", "warnings",
)  # fmt: skip


@dataclass(frozen=True)
class VariantOverview:
    """The state of a variant, the figures of its last build, and what changed since the build before."""

    name: str
    label: str
    """The variant's values of the matrix, as text; empty without a matrix."""
    precision: str
    device: str
    state: str
    """`up to date`, `not built`, `3 of 9 jobs to build` or `waits for T4 ...`."""
    figures: HeadlineFigures
    builds: Sequence[PastBuild] = ()
    """The variant's noted builds, the oldest first."""

    @property
    def change(self) -> LatencyChange | None:
        """The first latency of the last build, against the build before that measured it, too; None without one."""
        latest = self.figures.latencies[:1]
        for build in reversed(self.builds):
            before = build.figures.latency(latest[0].place) if latest else None
            if before is not None and before != latest[0]:
                return LatencyChange(before, latest[0])
        return None


def of(lookup: Lookup, summaries: Iterable[Summary], findings: Iterable[Finding]) -> Iterator[VariantOverview]:
    """Yield the overview of each variant; `findings` are those of all variants, in the same order."""
    by_name = {name: list(own) for name, own in groupby(findings, key=lambda finding: finding.job.recipe)}
    for summary in summaries:
        variant = summary.variant
        yield VariantOverview(
            name=variant.name,
            label=variant.loaded.variant,
            precision=summary.precision,
            device=", ".join(summary.devices),
            state=state_of(by_name.get(variant.name, [])),
            figures=summary.headline,
            builds=history.of(lookup.store.notes, variant.subject),
        )


def state_of(findings: Sequence[Finding]) -> str:
    """Return the state of a variant, by the findings about its jobs."""
    missing = [finding for finding in findings if finding.state != "cached"]
    error = next((finding.error for finding in findings if finding.error is not None), None)
    away = next((finding.waits_for for finding in missing if finding.waits_for is not None), None)
    if error is not None:
        return f"error: {error.what}"
    if not missing:
        return "up to date"
    if away is not None:
        return f"waits for {away}"
    if all(finding.state in ("new", "unknown") for finding in findings):
        return "not built"
    return f"{len(missing)} of {lists.counted(len(findings), 'job')} to build"


def as_text(overviews: Sequence[VariantOverview]) -> Iterator[str]:
    """Yield the lines of the table; a column without a value is left out."""
    header, rows = _table(overviews)
    right = [grid.RIGHT if _is_number(name) else grid.LEFT for name in header]
    yield from grid.lines([header, *rows], right)
    yield from _notes(overviews)


def as_markdown(overviews: Sequence[VariantOverview]) -> Iterator[str]:
    """Yield the lines of the table as GitHub and GitLab draw it."""
    header, rows = _table(overviews)
    yield from grid.markdown_table(header, rows, right=[_is_number(name) for name in header])
    for note in _notes(overviews):
        yield from ("", grid.escaped_markdown(note))


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
            more = ("", "") if latency is None else (latency.paused_ms, latency.rows_per_s)
            writer.writerow([*row, *[""] * (len(_CSV) - len(row) - 3), *more, "; ".join(figures.warnings)])
    yield from page.getvalue().splitlines()


FORMATS: Mapping[str, Callable[[Sequence[VariantOverview]], Iterator[str]]] = {
    "text": as_text,
    "markdown": as_markdown,
    "csv": as_csv,
}


def _notes(overviews: Sequence[VariantOverview]) -> Iterator[str]:
    """Yield where the latencies were measured, if all were alike, and each warning with the variants that have it."""
    places = _places(overviews)
    if len(places) == 1:
        yield f"p50 at {places[0]}"
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
