"""Charts: latencies beside those of the rivals, rows a second by batch, accuracy against latency, builds over time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from markupsafe import Markup

from engine.report.page import svg
from engine.report.page.svg import NARROW, WIDE
from engine.report.page.values import FILTERS, Value
from engine.report.page.variant import title
from engine.text import lists

_TOP = 14.0
_HIGH = 300.0
_LEGEND = 20.0
"""The height of a name below a narrow picture. In a wide picture, names stand beside the lines."""
_FONT = 12
"""The size of the font in pixels."""
_LABEL_HIGH = 15.0
"""The height of a label."""
_BESIDE = 9.0
"""The distance of a label from its point."""


def for_any_page(draw: Callable[..., Markup], what: object, label: str) -> Markup:
    """Return a chart in two widths: style sheets show one of them, by the width of the page."""
    both = Markup('<div class="when-wide">{}</div><div class="when-narrow">{}</div>')
    return both.format(draw(what, label), draw(what, label, NARROW))


def latencies(rows: Sequence[Value], label: str, wide: float = WIDE) -> Markup:
    """Return a line for each runtime, beside its name or, if narrow, below it, from p50 and its interval to p99."""
    names = [svg.fitted(title(row), wide / 2) for row in rows]
    room = max(map(svg.width, names)) + 20
    left, right, high, above = (room, 90.0, 30.0, 0.0) if wide == WIDE else (10.0, 10.0, 48.0, 16.0)
    name_at, named, value_at, value_style = (
        (left - 10, "end ", wide - right + 10, "") if wide == WIDE else (0.0, "", wide, "end ")
    )
    ends = [row[name].number or 0.0 for row in rows for name in ("p50_ms", "p99_ms")]
    ends += [end.number or 0.0 for row in rows for end in row["intervals"]["p50_ms"]]
    across = svg.scale([end for end in ends if end > 0] or [1.0], left, wide - right)
    bottom = _TOP + len(rows) * high
    drawn = svg.across(across, _TOP, bottom, "ms")
    for number, row in enumerate(rows):
        y = _TOP + (number + 0.5) * high + above / 2
        style = "ours" if row["ours"].raw else "rival"
        p50, p95, p99 = (across(row[name].number or across.low) for name in ("p50_ms", "p95_ms", "p99_ms"))
        interval = [across(end.number or across.low) for end in row["intervals"]["p50_ms"]] or [p50, p50]
        drawn += [
            svg.text((name_at, y - above + 4), names[number], f"{named}{style}-name"),
            svg.line((p50, y), (p99, y), f"spread {style}"),
            svg.line((p95, y - 6), (p95, y + 6), f"spread {style}"),
            svg.line((p99, y - 4), (p99, y + 4), f"spread {style}"),
            svg.box((interval[0], y - 6), (max(1.0, interval[1] - interval[0]), 12), f"interval {style}"),
            svg.circle((p50, y), 4.5, f"dot {style}"),
            svg.text((value_at, y - above + 4), svg.inside(FILTERS["ms"](row["p50_ms"])), f"{value_style}{style}-name"),
        ]
    return svg.picture(wide, bottom + 42, label, drawn)


def throughput(lines: Mapping[str, Sequence[tuple[int, Value]]], label: str, wide: float = WIDE) -> Markup:
    """Return a line for each runtime: rows a second against the size of the batch."""
    end = wide - _room(lines, wide)
    points = [(batch, 1000 * batch / (p50.number or 1.0)) for line in lines.values() for batch, p50 in line]
    across = svg.scale([float(batch) for batch, _ in points], 70.0, end)
    up = svg.scale([rate for _, rate in points], _HIGH - 50, 30.0, from_zero=True)
    drawn = [*svg.across(across, 30, _HIGH - 50, "batch"), *svg.upwards(up, 70, end, "rows a second")]
    ends = {}
    for number, (name, line) in enumerate(lines.items()):
        places = [(across(batch), up(1000 * batch / (p50.number or 1.0))) for batch, p50 in line]
        style = _style(number)
        drawn += [svg.path(places, f"line {style}"), *(svg.circle(place, 4, f"dot {style}") for place in places)]
        ends[name] = places[-1]
    return _with_names(drawn, ends, label, wide, _HIGH)


def _room(names: Iterable[str], wide: float) -> float:
    """Return the room right of the lines: for their names in a wide picture."""
    return 20 + max(svg.width(svg.fitted(name, wide / 3)) for name in names) if wide == WIDE else 10.0


def _style(number: int) -> str:
    """Return the style of a line: ours is the first."""
    return "ours" if number == 0 else f"rival dash-{number}"


def _with_names(
    drawn: Iterable[Markup], ends: Mapping[str, tuple[float, float]], label: str, wide: float, high: float
) -> Markup:
    """Return a picture with the names of its lines: at the ends of the lines, or below a narrow picture."""
    names: list[Markup] = []
    taken: list[float] = []
    for number, (name, (x, y)) in enumerate(ends.items()):
        style = "ours-name" if number == 0 else "rival-name"
        if wide == WIDE:
            names.append(svg.text((x + 10, _free(y, taken) + 4), svg.fitted(name, wide / 3), style))
            continue
        below = high + (number + 0.5) * _LEGEND
        names.append(svg.path([(10, below), (50, below)], f"line {_style(number)}"))
        names.append(svg.text((60, below + 4), svg.fitted(name, wide - 60), style))
    legend = 0.0 if wide == WIDE else len(ends) * _LEGEND
    return svg.picture(wide, high + legend, label, [*drawn, *names])


def _free(y: float, taken: list[float]) -> float:
    """Return a height for a label that no other label has."""
    while any(abs(y - other) < 15 for other in taken):  # noqa: PLR2004 - the height of a line of text
        y += 5
    taken.append(y)
    return y


@dataclass(frozen=True)
class VariantPoint:
    """A variant in the picture of accuracy against latency."""

    name: str
    latency: float
    accuracy: float
    anchor: str = ""
    label: str = ""
    """The part of the name in which the variants differ."""


def front(points: Sequence[VariantPoint]) -> list[VariantPoint]:
    """Return the Pareto front: the points that no other point beats in latency without being less accurate."""
    best: list[VariantPoint] = []
    for point in sorted(points, key=lambda each: (each.latency, -each.accuracy)):
        if not best or point.accuracy > best[-1].accuracy:
            best.append(point)
    return best


def scatter(
    points: Sequence[VariantPoint], label: str, wide: float = WIDE, *, titles: tuple[str, str] = ("p50 in ms", "cosine")
) -> Markup:
    """Return the accuracy against latency, a named point for each variant; a line joins the points of the Pareto front.

    The points of the front have their names first, and the others as far as there is room. Variants at one place have
    one name, with the number of the others. `titles` are those of the axes: of the latency and of the accuracy.
    """
    across = svg.scale([point.latency for point in points], 80.0, wide - 30)
    up = svg.scale([point.accuracy for point in points], _HIGH - 50 + 60, 30.0)
    bottom = _HIGH + 10
    drawn = [*svg.across(across, 30, bottom, titles[0]), *svg.upwards(up, 80, wide - 30, titles[1])]
    best = front(points)
    steps: list[tuple[float, float]] = []
    for point in best:
        place = across(point.latency), up(point.accuracy)
        steps += [(place[0], steps[-1][1]), place] if steps else [place]
    drawn.append(svg.path(steps, "line ours"))
    for point in points:
        title = f"{point.name}: {titles[0]} {point.latency:g}, {titles[1]} {point.accuracy:.4f}"
        at = across(point.latency), up(point.accuracy)
        if point not in best:
            drawn.append(svg.circle(at, 4, "dot rival hollow", title))
            continue
        link = Markup('<a href="#{}" aria-label="{}">{}</a>')
        drawn.append(link.format(point.anchor, title, svg.circle(at, 5.5, "dot ours", title)))
    names: dict[tuple[float, float], list[str]] = {}
    for point in sorted(points, key=lambda each: each not in best):
        names.setdefault((across(point.latency), up(point.accuracy)), []).append(point.label)
    words = [lists.first_of(each, 1) for each in names.values()]
    drawn += _labels(list(names), words, Box(82, 20, wide, bottom - 2))
    return svg.picture(wide, bottom + 42, label, drawn).replace(Markup('role="img"'), Markup('role="group"'), 1)


def builds(lines: Mapping[str, Sequence[tuple[float, Value]]], label: str, wide: float = WIDE) -> Markup:
    """Return a line for each shape: the median latency, with its confidence interval, from build to build."""
    end = wide - _room(lines, wide)
    first, last = 80.0, end - 20
    count = max(1, max(len(line) for line in lines.values()) - 1)
    values = [limit for line in lines.values() for _, each in line for limit in _band(each)]
    up = svg.scale(values, 220.0, 24.0)
    drawn = svg.upwards(up, 70, end, "p50 in ms")
    ends = {}
    for number, (name, line) in enumerate(lines.items()):
        style = _style(number)
        places = []
        for place, (_, each) in enumerate(line):
            x = first + place / count * (last - first)
            low, high = _band(each)
            places.append((x, up(each["p50_ms"].number or low)))
            drawn += [
                svg.line((x, up(low)), (x, up(high)), f"spread {style}"),
                svg.circle(places[-1], 4, f"dot {style}"),
            ]
        drawn.append(svg.path(places, f"line {style}"))
        ends[name] = places[-1]
    times = [line[place][0] for line in list(lines.values())[:1] for place in (0, -1)]
    for at, x, align in zip(times, (first - 10, end), ("", " end"), strict=False):
        drawn.append(svg.text((x, 244), time.strftime("%Y-%m-%d %H:%M", time.localtime(at)), f"tick{align}"))
    return _with_names(drawn, ends, label, wide, 256.0)


def _band(latency: Value) -> tuple[float, float]:
    low, high = (each.number or 0.0 for each in latency["interval"])
    return low, high


class Box(NamedTuple):
    """A rectangle in a picture, in pixels."""

    left: float
    top: float
    right: float
    bottom: float

    def covers(self, other: Box) -> bool:
        """Tell whether two rectangles have a point in common."""
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )

    def holds(self, other: Box) -> bool:
        """Tell whether the other rectangle lies inside of this one."""
        return (
            self.left <= other.left
            and self.top <= other.top
            and other.right <= self.right
            and other.bottom <= self.bottom
        )


def _labels(points: Sequence[tuple[float, float]], names: Sequence[str], area: Box) -> list[Markup]:
    """Return the names of points for which `area` has room, each joined with its point where that is not beside it."""
    taken = [Box(x - 6, y - 6, x + 6, y + 6) for x, y in points]
    marks = []
    for (x, y), name in zip(points, names, strict=True):
        words = svg.fitted(name, (area.right - area.left) * 0.6, _FONT)
        for place in _places(x, y, svg.width(words, _FONT)):
            if area.holds(place) and not any(place.covers(other) for other in taken):
                taken.append(place)
                middle = (place.top + place.bottom) / 2
                near = place.left if place.left > x else place.right
                if abs(middle - y) > _LABEL_HIGH / 2:
                    marks.append(svg.line((x, y), (near, middle), "lead"))
                style = "label" if place.left > x else "label end"
                marks.append(svg.text((near, middle + 4), words, style))
                break
    return marks


def _places(x: float, y: float, wide: float) -> Iterator[Box]:
    """Yield the places for a label of this width, the nearest first: right and left of its point, above and below."""
    for step in range(40):
        down = (step + 1) // 2 * _LABEL_HIGH * (1 if step % 2 else -1)
        for left in (x + _BESIDE, x - _BESIDE - wide):
            yield Box(left, y + down - _LABEL_HIGH / 2, left + wide, y + down + _LABEL_HIGH / 2)
