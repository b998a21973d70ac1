"""Difference: what `recipe diff` prints, as text, as Markdown for a pull request, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import groupby

from engine.builder.difference import (
    STARTS,
    Amount,
    JobChange,
    JobDifference,
    LatencyChange,
    SideComparison,
    VariantDifference,
)
from engine.report import grid
from engine.report.history import change_in_words
from engine.text import lists, quantities, sizes

_ROWS = 3
"""The most changed rows of a job that text and Markdown show; `--json` has all."""
_SIZE = "size"
_SIGNS: Mapping[JobChange, str] = {JobChange.ADDED: "new", JobChange.REMOVED: "no longer in the plan"}


def as_text(comparison: SideComparison) -> Iterator[str]:
    """Yield for each variant that differs the jobs, the cost of a build, and a table of the figures."""
    yield f"{comparison.old} -> {comparison.new}"
    for variant in comparison.variants:
        if not variant.is_none:
            yield f"{variant.name}: {_headline(variant)}"
            yield from (f"  {line}" for line in _causes(variant))
            yield from grid.lines(_figures(variant), [grid.LEFT, grid.RIGHT, grid.RIGHT, grid.LEFT], indent=2)
            yield from (f"  {line}" for line in _warnings(variant))
    yield from _unchanged(comparison)


def as_markdown(comparison: SideComparison) -> Iterator[str]:
    """Yield a heading, a table with a row for each figure, and the causes; of many variants a row for each."""
    yield f"### {grid.escaped_markdown(comparison.old)} → {grid.escaped_markdown(comparison.new)}"
    differing = [variant for variant in comparison.variants if not variant.is_none]
    if len(differing) == 1:
        yield from _one_in_markdown(differing[0])
    elif differing:
        yield from _many_in_markdown(differing)
    yield from ("", *_unchanged(comparison))


def as_json(comparison: SideComparison) -> dict[str, object]:
    """Return the comparison as a JSON object: all jobs of all variants, with all rows."""
    return {
        "old": comparison.old,
        "new": comparison.new,
        "variants": [
            {
                "recipe": variant.name,
                "old": None if variant.old is None else variant.old.name,
                "new": None if variant.new is None else variant.new.name,
                "jobs": [{**asdict(job), "change": job.change.value} for job in variant.jobs],
                "figures": [asdict(amount) for amount in variant.amounts],
                "latencies": [_latency_fields(change) for change in variant.latencies],
                "devices": list(variant.devices),
                "warnings": list(variant.warnings),
            }
            for variant in comparison.variants
        ],
    }


def _latency_fields(change: LatencyChange) -> dict[str, object]:
    low, high = change.band
    return {
        "place": change.new.place,
        "old_ms": change.old.p50_ms,
        "old_interval": list(change.old.interval),
        "new_ms": change.new.p50_ms,
        "new_interval": list(change.new.interval),
        "ratio": round(change.ratio, 4),
        "band": [round(low, 4), round(high, 4)],
        "verdict": change.verdict.value,
    }


def _one_in_markdown(variant: VariantDifference) -> Iterator[str]:
    yield from ("", f"**{grid.escaped_markdown(variant.name)}**: {grid.escaped_markdown(_headline(variant))}", "")
    rows = _figures(variant)
    if rows:
        yield from grid.markdown_table(("", "before", "after", "difference"), rows, right=[False, True, True])
        yield ""
    yield from (f"- {grid.escaped_markdown(line)}" for line in (*_causes(variant), *_warnings(variant)))


def _many_in_markdown(variants: Sequence[VariantDifference]) -> Iterator[str]:
    names = dict.fromkeys(row[0] for variant in variants for row in _figures(variant))
    header = ("variant", "jobs", *names)
    rows = []
    for variant in variants:
        cells = {
            name: f"{old or 'none'} → {new or 'none'} {difference}".rstrip()
            for name, old, new, difference in _figures(variant)
        }
        rows.append((variant.name, _headline(variant), *(cells.get(name, "") for name in names)))
    yield ""
    yield from grid.markdown_table(header, rows)
    for causes, own in groupby(sorted(variants, key=_causes), key=_causes):
        alike = list(own)
        if causes:
            name = alike[0].name if len(alike) == 1 else lists.counted(len(alike), "variant")
            yield from ("", f"{grid.escaped_markdown(name)}:", *(f"- {grid.escaped_markdown(line)}" for line in causes))
    yield from ("", *dict.fromkeys(grid.escaped_markdown(line) for variant in variants for line in _warnings(variant)))


def _headline(variant: VariantDifference) -> str:
    """Return how many jobs differ, and what a build of the second side runs and costs."""
    if variant.new is None:
        return "no longer there"
    parts = ["new"] if variant.old is None else []
    if variant.differing and variant.old is not None:
        parts.append(f"{len(variant.differing)} of {lists.counted(len(variant.jobs), 'job')} differ")
    elif variant.old is not None:
        parts.append("no job differs")
    if variant.to_build:
        known = [job.seconds for job in variant.to_build if job.seconds is not None]
        cost = f", {quantities.about_duration(sum(known))}" if len(known) == len(variant.to_build) else ""
        parts.append(f"to build: {', '.join(job.job for job in variant.to_build)}{cost}")
    else:
        parts.append("all built")
    return "; ".join(parts)


def _causes(variant: VariantDifference) -> list[str]:
    """Return a line for each job that differs by itself, then one line for those that follow."""
    if variant.old is None or variant.new is None:
        return []
    lines = [line for job in variant.differing if (line := _cause(job))]
    for change, words in ((JobChange.FOLLOWS, "follow"), (JobChange.MAY_FOLLOW, "may follow")):
        names = [job.job for job in variant.differing if job.change is change]
        if names:
            lines.append(f"{words}: {', '.join(names)}")
    return lines


def _cause(job: JobDifference) -> str:
    if job.change is JobChange.UNKNOWN:
        return f"{job.job}: {job.error or 'not known'}"
    if job.change in _SIGNS:
        return f"{job.job}: {_SIGNS[job.change]}"
    more = len(job.rows) - _ROWS
    shown = [*map(change_in_words, job.rows[:_ROWS]), *([f"{more} more rows"] if more > 0 else [])]
    return f"{job.job}: {'; '.join(shown)}" if job.change is JobChange.CHANGED else ""


def _figures(variant: VariantDifference) -> list[tuple[str, str, str, str]]:
    """Return a row for each figure: its name, both values, and the difference where both are measured."""
    rows = [(each.name, _value(each, each.old), _value(each, each.new), _change(each)) for each in variant.amounts]
    compared = {change.new.place: change for change in variant.latencies}
    sides = [None if side is None else side.figures for side in (variant.old, variant.new)]
    places = dict.fromkeys(each.place for side in sides if side is not None for each in side.latencies)
    for place in places:
        values = [None if side is None else side.latency(place) for side in sides]
        old, new = ("" if each is None else f"{each.p50_ms:.3f} ms" for each in values)
        words = compared[place].in_words() if place in compared else ""
        rows.append((f"p50, {place}", old, new, words))
        paused = [each and each.paused_ms for each in values]
        if any(paused):  # one call in each round: too few for a verdict
            old, new = ("" if each is None else f"{each:.3f} ms" for each in paused)
            rows.append((f"after a pause, {place}", old, new, ""))
    return rows


def _value(amount: Amount, value: float | None) -> str:
    if value is None:
        return ""
    if amount.name in STARTS:
        return f"{value:.2f}"
    return sizes.decimal(int(value)) if amount.name == _SIZE else f"{value:.4f}"


def _change(amount: Amount) -> str:
    if amount.old is None or amount.new is None or amount.old == amount.new or amount.name in STARTS:
        return ""
    if amount.name == _SIZE:
        return f"{amount.new / amount.old - 1:+.1%}" if amount.old else ""
    return f"{amount.new - amount.old:+.4f}"


def _warnings(variant: VariantDifference) -> Iterator[str]:
    yield from variant.warnings
    if len(variant.devices) > 1 and variant.latencies:
        yield f"measured on different devices: {', '.join(variant.devices)}"
    away = dict.fromkeys(job.waits_for for job in variant.to_build if job.waits_for)
    if away:
        yield f"waits for {', '.join(away)}"


def _unchanged(comparison: SideComparison) -> Iterator[str]:
    same = [variant for variant in comparison.variants if variant.is_none]
    if same and len(same) == len(comparison.variants):
        yield "nothing differs"
    elif same:
        yield f"{lists.counted(len(same), 'further variant')}: nothing differs"
