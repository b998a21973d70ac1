"""The page of a search: accuracy against latency with the Pareto front, and the table of the trials below it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup

from engine.recipe.matrix import written
from engine.report.page import charts, page, svg
from engine.report.page.charts import Box
from engine.report.page.svg import WIDE
from engine.report.page.tables import PageColumn, PageTable, numbers
from engine.report.page.values import FILTERS, Value
from engine.text import distribution, lists, quantities, sizes

if TYPE_CHECKING:
    from engine.tuning.result import TrialRow, TuneResult

_FIGURES = {"p95_ms": "p95 in ms", "p50_ms": "p50 in ms", "p99_ms": "p99 in ms", "throughput": "rows a second"}
"""What the picture can have on its horizontal axis, and how the axis names it."""
_TOP, _BOTTOM, _LEFT = 34.0, 340.0, 84.0
_LEAST, _LARGEST = 4.0, 15.0
"""The radii of points in pixels: of the smallest ones, and of the largest model."""
_NO_LOSS = 1e-6
"""A smaller loss of accuracy is noise of the arithmetic: the axis ends here."""
_DECADES = 100.0
"""From this ratio of losses on, the axis of the accuracy has ticks at 0.9, 0.99, 0.999 and so on alone."""


@dataclass(frozen=True)
class _Trial:
    """A trial with its place in the picture: the values of its figure and of its loss of accuracy."""

    row: TrialRow
    figure: float
    loss: float
    style: str
    named: str
    """What stands beside the point if there is room."""
    ring: str
    """The style of the ring around the chosen trial, and around the recipe as it is written."""

    def radius(self, largest: int) -> float:
        """Return the radius of the point, whose area is the size of the model."""
        return round(max(_LEAST, _LARGEST * math.sqrt((self.row.size or 0) / max(largest, 1))), 1)


def write(result: TuneResult, path: Path) -> None:
    """Write the page of a search; an earlier one is replaced. Raises UsageError for a place that cannot have it."""
    page.write(html(result, distribution.running()), path)


def html(result: TuneResult, version: str) -> str:
    """Return the page of a search."""
    figure, accuracy = _figure(result), _accuracy(result.trials)
    drawn = _drawn(result, figure, accuracy)
    picture = None
    if drawn:
        label = (
            f"{accuracy} against {_FIGURES[figure]} of {lists.counted(len(drawn), 'trial')}; the table has the figures."
        )
        picture = charts.for_any_page(_Picture(figure, accuracy), drawn, label)
    model_sizes = [each.row.size or 0 for each in drawn if each.row.size]
    return page.rendered(
        page.templates(),
        "search.html",
        title=result.recipe,
        result=result,
        chosen=None if result.chosen is None else result.row(result.chosen),
        spent=quantities.duration(result.seconds),
        picture=picture,
        speed="throughput" if figure == "throughput" else "latency",
        accuracy=accuracy,
        sizes=" to ".join(dict.fromkeys(map(sizes.decimal, (min(model_sizes), max(model_sizes)))))
        if model_sizes
        else "",
        undrawn=len(result.trials) - len(drawn),
        table=_table(result),
        version=version,
    )


def _figure(result: TuneResult) -> str:
    """Return the figure that the search is for, if that is a time or throughput; else the commonest one."""
    measured = [name for row in result.trials for name in row.figures if name in _FIGURES]
    named = [name for name in _FIGURES if name in result.objective and name in measured]
    return named[0] if named else max(_FIGURES, key=measured.count)


def _accuracy(rows: Sequence[TrialRow]) -> str:
    """Return the accuracy that the picture shows: the cosine of the worst sample, or the first other one."""
    return next(iter(_names(rows)), "cosine")


def _names(rows: Sequence[TrialRow]) -> list[str]:
    """Return the names of the measured accuracies, the cosine first."""
    return sorted(dict.fromkeys(name for row in rows for name in row.accuracies), key=lambda name: name != "cosine")


def _drawn(result: TuneResult, figure: str, accuracy: str) -> list[_Trial]:
    """Return the trials that have both figures: the chosen one first, then the recipe as written, then the front."""
    first, chosen = result.trials[0].number if result.trials else None, result.chosen
    trials = []
    for row in (result.row(each.number) for each in result.trials):
        value, kept = row.figures.get(figure), row.accuracies.get(accuracy)
        if not value or kept is None:
            continue
        on_front = row.number in result.front
        style = "ours" if on_front else "hollow see rival" if row.state == "validated" else "missed"
        named = _short(row.point) if on_front or row.number in (first, chosen) else ""
        ring = "ours" if row.number == chosen else "dash-2" if row.number == first else ""
        named = f"chosen: {named}" if row.number == chosen else named
        trials.append(_Trial(row, value, max(_NO_LOSS, 1 - kept), style, named, ring))
    rank = {chosen: 0, first: 1}
    return sorted(trials, key=lambda each: (rank.get(each.row.number, 2 if each.named else 3), each.row.number))


def _short(point: Mapping[str, object]) -> str:
    """Return a point in few words: texts alone, other values with the last word of their field."""
    words = [
        value if isinstance(value, str) else f"{path.split('.')[-1]} {written(value)}" for path, value in point.items()
    ]
    return ", ".join(words) or "as written"


@dataclass(frozen=True)
class _Picture:
    """The picture of the trials, by the figure on its horizontal axis and the accuracy on its vertical one."""

    figure: str
    accuracy: str

    def __call__(self, trials: Sequence[_Trial], label: str, wide: float = WIDE) -> Markup:
        """Return the picture in some width."""
        across = svg.scale([each.figure for each in trials], _LEFT + _LARGEST, wide - 30)
        down = svg.scale([each.loss for each in trials], _TOP + _LARGEST, _BOTTOM - _LARGEST)
        largest = max(each.row.size or 0 for each in trials)
        title = "cosine of the worst sample" if self.accuracy == "cosine" else self.accuracy
        drawn = [*svg.across(across, _TOP, _BOTTOM, _FIGURES[self.figure]), *_levels(down, wide - 30)]
        drawn += [svg.text((_LEFT, 16), title, "tick"), svg.path(self._steps(trials, across, down), "line ours")]
        named: dict[Box, str] = {}
        others = []
        # Small points lie upon large ones, and those with names upon the others.
        for each in sorted(trials, key=lambda each: (bool(each.named), -each.radius(largest))):
            at, radius, title = (across(each.figure), down(each.loss)), each.radius(largest), self._title(each)
            point = svg.circle(at, radius, f"dot {each.style}", title)
            drawn.append(Markup('<a href="#trial-{}" aria-label="{}">{}</a>').format(each.row.number, title, point))
            if each.ring:
                drawn.append(svg.circle(at, radius + 4, f"ring {each.ring}"))
            others.append(charts.around(at, radius))
        for each in trials:
            if each.named:
                edge = each.radius(largest) + 5 * bool(each.ring)
                named.setdefault(charts.around((across(each.figure), down(each.loss)), edge), each.named)
        drawn += charts.labels(list(named), list(named.values()), Box(_LEFT + 2, _TOP - 10, wide, _BOTTOM - 2), others)
        return svg.picture(wide, _BOTTOM + 42, label, drawn).replace(Markup('role="img"'), Markup('role="group"'), 1)

    def _steps(self, trials: Sequence[_Trial], across: svg.Scale, down: svg.Scale) -> list[tuple[float, float]]:
        """Return the line that no validated trial lies beyond: it joins those of the front by accuracy and figure."""
        is_more = self.figure == "throughput"
        steps: list[tuple[float, float]] = []
        best = math.inf
        for each in sorted(
            (each for each in trials if each.row.state == "validated"),
            key=lambda each: (-each.figure if is_more else each.figure, each.loss),
        ):
            if each.loss < best:
                best, at = each.loss, (across(each.figure), down(each.loss))
                steps += [(at[0], steps[-1][1]), at] if steps else [at]
        return steps or [(across.start, down.start)]

    def _title(self, each: _Trial) -> str:
        """Return what a pointer on a trial, or a screen reader, is told."""
        row = each.row
        parts = [f"{row.figures[self.figure]:.4g} {_FIGURES[self.figure]}"]
        parts += [f"{self.accuracy} {row.accuracies[self.accuracy]:.4f}"]
        parts += [sizes.decimal(row.size)] if row.size else []
        parts += [] if row.state == "validated" else [f"{row.state}{f': {row.why}' if row.why else ''}"]
        return f"trial {row.number}, {row.name}: {', '.join(parts)}"


def _levels(down: svg.Scale, right: float) -> Iterator[Markup]:
    """Yield the lines and labels of the accuracy, most accurate at the top."""
    ticks = [tick for tick in down.ticks(5) if 0 <= tick <= 1]
    if down.logarithmic and down.high / down.low > _DECADES:
        ticks = [tick for tick in ticks if f"{tick:e}".startswith("1.0")]
    words = {f"{1 - tick:.6g}": tick for tick in ticks}
    for word, tick in words.items():
        y = down(tick)
        yield svg.line((_LEFT, y), (right, y), "grid")
        yield svg.text((_LEFT - 6, y + 4), f"≥ {word}" if math.isclose(tick, _NO_LOSS) else word, "tick end")


def _table(result: TuneResult) -> PageTable:
    """Return the table of the trials; those of the last race have its figures."""
    fields = Value(result.to_json(), "tune")
    finals = {row.number: fields["finals"][at] for at, row in enumerate(result.finals)}
    values = [finals.get(row.number, fields["trials"][at]) for at, row in enumerate(result.trials)]
    rows = [result.row(each.number) for each in result.trials]
    figures, kept = ([each[name] for each in values] for name in ("figures", "accuracies"))
    marks = dict.fromkeys([row.number for row in rows[:1]], "as written") | dict.fromkeys(result.front, "front")
    marks |= {} if result.chosen is None else {result.chosen: "chosen"}
    number = Markup('<span id="trial-{0}">{0}</span>')
    columns = [
        PageColumn("trial", [number.format(row.number) for row in rows]),
        PageColumn("mark", [marks.get(row.number, "") for row in rows]),
        PageColumn("point", [row.name for row in rows]),
        PageColumn("state", [row.state for row in rows]),
        *(numbers(name, "accuracy", [each[name] for each in kept]) for name in _names(rows)),
        numbers("mean cosine", "accuracy", [each["mean_cosine"] for each in values]),
        numbers("size", "size", [each["size"] for each in values]),
        *(numbers(f"p{each} ms", "ms", [row[f"p{each}_ms"] for row in figures]) for each in (50, 95, 99)),
        numbers("rows a second", "num", [each["throughput"] for each in figures]),
        PageColumn("speed-up", [_lead(each) for each in values], right=True),
        numbers("lasting", "lasting", [each["seconds"] for each in values]),
        PageColumn("why", [row.why for row in rows]),
    ]
    ours = [row.number == result.chosen for row in rows]
    return PageTable(f"trials of {result.recipe}", columns, ours, anchor="trials")


def _lead(row: Value) -> Markup:
    """Return how many times as fast as the recipe as written a trial is, with the interval."""
    interval = [FILTERS["times"](each).replace(Markup(" x"), Markup()) for each in row["interval"]]
    return FILTERS["times"](row["lead"]) + (Markup(" [{}, {}]").format(*interval) if interval else Markup())
