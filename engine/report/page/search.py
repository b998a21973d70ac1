"""The page of a search: the accuracy of its trials against their latency, and a table of all figures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup

from engine.report.page import page, tables
from engine.report.page.charts import VariantPoint
from engine.report.page.tables import PageColumn, PageTable, numbers
from engine.report.page.values import Value
from engine.text import distribution

if TYPE_CHECKING:
    from engine.tuning.result import TrialRow, TuneResult


def write(result: TuneResult, path: Path) -> None:
    """Write the page of a search; an earlier one is replaced. Raises UsageError for a place that cannot have it."""
    page.write(html(result, distribution.running()), path)


def html(result: TuneResult, version: str) -> str:
    """Return the page of a search."""
    rows = result.trials
    points = [_point(row, result.chosen) for row in rows if row.lead and row.accuracies]
    names = list(dict.fromkeys(name for row in rows for name in row.accuracies))
    kept = "cosine of the worst sample" if "cosine" in names else next(iter(names), "")
    fields = Value(result.to_json(), "tune")
    return page.rendered(
        page.templates(),
        "search.html",
        title=result.recipe,
        result=result,
        seconds=fields["seconds"],
        scatter=page.scatter(points, "trial", ("time as a share of the first trial's", kept)),
        undrawn=len(rows) - len(points),
        trials=_table(result, fields["trials"]),
        version=version,
    )


def _point(row: TrialRow, chosen: int | None) -> VariantPoint:
    """Return a trial as a point: its time is in turns with the first trial, which has 1."""
    label = "chosen" if row.number == chosen else str(row.number)
    time, anchor = round(1 / (row.lead or 1), 3), f"trial-{row.number}"
    return VariantPoint(f"trial {row.number}, {row.name}", time, 1 - row.loss, anchor, label)


def _table(result: TuneResult, shown: Value) -> PageTable:
    """Return the table of trials; `shown` are the same rows in `recipe tune --json`."""
    rows, number = result.trials, Markup('<span id="trial-{0}">{0}</span>')
    figures, kept = ([each[field] for each in shown] for field in ("figures", "accuracies"))
    marks = dict.fromkeys(result.finals, "last race") | dict.fromkeys(result.front, "front")
    marks |= {result.chosen or 0: "chosen"}
    columns = [
        PageColumn("trial", [number.format(row.number) for row in rows]),
        PageColumn("mark", [marks.get(row.number, "") for row in rows]),
        PageColumn("point", [row.name for row in rows]),
        PageColumn("state", [row.state for row in rows]),
        *(numbers(each, "accuracy", [row[each] for row in kept]) for each in ("cosine", "agreement", "rank", "metric")),
        numbers("mean cosine", "accuracy", [each["mean_cosine"] for each in shown]),
        numbers("size", "size", [each["size"] for each in shown]),
        *(numbers(f"p{each} ms", "ms", [row[f"p{each}_ms"] for row in figures]) for each in (50, 95, 99)),
        numbers("rows a second", "rate", [row["throughput"] for row in figures]),
        numbers("lead", "times", [each["lead"] for each in shown]),
        PageColumn("its interval", [tables.interval(each["interval"], "times") for each in shown], right=True),
        numbers("took", "lasting", [each["seconds"] for each in shown]),
        PageColumn("why", [row.why for row in rows]),
    ]
    return PageTable("trials", columns, [row.number == result.chosen for row in rows], "trials")
