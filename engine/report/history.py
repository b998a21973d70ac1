"""History: the builds of a variant, the newest first, as text and as JSON."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from engine.key import Change
from engine.report import grid
from engine.store.history import JobRun, PastBuild
from engine.text import lists, quantities, sizes

_ROWS = 4
"""The most changed rows of a job that the text shows; `--json` has all."""
_VALUE = 24
"""The most characters that the text shows of a row's value."""


def as_json(builds: Sequence[PastBuild]) -> list[dict[str, object]]:
    """Return the builds as JSON objects, the oldest first: all fields, with their default values, too."""
    return [{**asdict(build), "seconds": round(build.seconds, 3)} for build in builds]


def lines(builds: Sequence[PastBuild], *, limit: int | None = None) -> Iterator[str]:
    """Yield for each build, the newest first, a row with its figures, and below it the jobs that ran and why."""
    newest = list(reversed(builds))[:limit]
    rows = [_row(build) for build in newest]
    header = ("when", "state", "ran", "took", "size", "cosine", "p50 ms")
    aligned = grid.lines([header, *rows], [grid.LEFT, grid.LEFT, *[grid.RIGHT] * 5])
    yield aligned[0]
    for line, build in zip(aligned[1:], newest, strict=True):
        yield line
        yield from (f"  {each}" for each in jobs(build))
        yield from (f"  warning: {each}" for each in build.figures.warnings)
    if len(newest) < len(builds):
        yield f"{lists.counted(len(builds) - len(newest), 'earlier build')} not shown: --limit {len(builds)} shows all"


def _row(build: PastBuild) -> tuple[str, ...]:
    figures = build.figures
    return (
        when(build.at),
        build.state,
        lists.counted(len(build.runs), "job"),
        quantities.duration(build.seconds),
        "" if figures.size is None else sizes.decimal(figures.size),
        "" if figures.cosine is None else f"{figures.cosine:.4f}",
        " / ".join(f"{each.p50_ms:.3g}" for each in figures.latencies),  # in the order of the measurement
    )


def when(at: float) -> str:
    """Return a time, in seconds since the epoch, as text in the local time zone."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))


def jobs(build: PastBuild) -> Iterator[str]:
    """Yield a line for each job with a cause of its own, then one line for the jobs that followed."""
    follow = [run.job for run in build.runs if not run.changes and not run.error]
    if build.compared_with:
        yield f"compared with the last build of {build.compared_with}"
    for run in build.runs:
        if run.job not in follow:
            yield f"{run.job}: {_cause(run)}"
    if follow:
        yield f"{'then' if len(follow) < len(build.runs) else 'ran'}: {', '.join(follow)}"


def _cause(run: JobRun) -> str:
    shown = [change_in_words(change) for change in run.changes[:_ROWS]]
    more = len(run.changes) - len(shown)
    rows = [*shown, *([f"{more} more"] if more else [])]
    return "; ".join([*rows, *([f"failed: {run.error}"] if run.error else [])])


def change_in_words(change: Change) -> str:
    """Return a changed row as text: its name, and the old and the new value, shortened."""
    return f"{change.row} {_short(change.old)} -> {_short(change.new)}"


def _short(value: str | None) -> str:
    if value is None:
        return "(none)"
    return value if len(value) <= _VALUE else f"{value[: _VALUE // 2]}…"
