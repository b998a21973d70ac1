"""The plan as a picture: jobs in layers, each below the jobs whose outputs it reads, with states and durations."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

from engine.report.graph import GraphJob
from engine.report.page import svg
from engine.report.page.values import FILTERS, Value
from engine.text import lists

_NARROWEST, _WIDEST, _HEIGHT = 104.0, 250.0, 44
"""The size of a job's box in pixels: all boxes of a picture are as wide as the longest text in them needs."""
_MARGIN = 8
"""The room in pixels between a box and its text."""
_NAME, _STATE = 13, 12
"""The sizes of the fonts in a box, in pixels."""
_PASSING = 14
"""The width in pixels that a line needs which passes a layer."""
_ACROSS, _DOWN = 20, 30
"""The room between boxes in pixels."""
_SWEEPS = 6
_NAMED = 12
"""The most variants that the title of a box names."""
MOST = 60
"""The most jobs that are drawn; a picture with more says less than a table."""


@dataclass
class _Spot:
    """A place in a layer: of a job, or of a line that passes the layer."""

    job: int | None
    above: list[int] = field(default_factory=list)
    below: list[int] = field(default_factory=list)


def picture(jobs: Sequence[GraphJob], seconds: Sequence[Value]) -> Markup:
    """Return the picture of the jobs; `seconds` are the durations of their last runs, in the same order.

    A picture that is wider than a narrow page is shown on wide pages only. The table of jobs stands on all pages.
    """
    spots, layers, routes = _laid_out(jobs)
    texts = [_texts(job, each, jobs) for job, each in zip(jobs, seconds, strict=True)]
    needed = [max(svg.width(name, _NAME), svg.width(state.striptags(), _STATE)) for name, state in texts]
    box = min(_WIDEST, max([_NARROWEST, *needed]) + 2 * _MARGIN)
    wide, places = _places(spots, layers, box)
    high = len(layers) * (_HEIGHT + _DOWN) + _DOWN
    drawn = [_route([places[spot] for spot in route]) for route in routes]
    for number, spot in enumerate(spots):
        if spot.job is not None:
            drawn.append(_job(jobs[spot.job], texts[spot.job], places[number], box))
    label = f"The plan: {lists.counted(len(jobs), 'job')}. The table below has the same jobs."
    drawing = svg.picture(wide, high, label, drawn)
    if wide <= svg.NARROW:
        return drawing
    note = Markup('<p class="note when-narrow">The picture of the plan needs a wider page.</p>')
    return Markup('<div class="when-wide">{}</div>{}').format(drawing, note)


def _laid_out(jobs: Sequence[GraphJob]) -> tuple[list[_Spot], list[list[int]], list[list[int]]]:
    """Return the spots, the numbers of the spots in each layer, and for each line the spots that it passes.

    A job that another input of a job needs, too, gets no line of its own to that job.
    """
    depth: list[int] = []
    needed: list[set[int]] = []
    for job in jobs:
        needed.append(set(job.earlier).union(*(needed[each] for each in job.earlier)))
    for job in jobs:
        depth.append(1 + max((depth[each] for each in job.earlier), default=-1))
    spots = [_Spot(number) for number in range(len(jobs))]
    layers: list[list[int]] = [[] for _ in range(max(depth, default=0) + 1)]
    for number, layer in enumerate(depth):
        layers[layer].append(number)
    routes = []
    for number, job in enumerate(jobs):
        for earlier in job.earlier:
            if any(earlier in needed[other] for other in job.earlier):
                continue
            route = [earlier]
            for layer in range(depth[earlier] + 1, depth[number]):
                spots.append(_Spot(None))
                layers[layer].append(len(spots) - 1)
                route.append(len(spots) - 1)
            routes.append([*route, number])
    for route in routes:
        for above, below in itertools.pairwise(route):
            spots[above].below.append(below)
            spots[below].above.append(above)
    _untangle(spots, layers)
    return spots, layers, routes


def _untangle(spots: Sequence[_Spot], layers: Sequence[list[int]]) -> None:
    """Order each layer by the middle of its neighbours, down and up in turn, so that few lines cross."""
    for sweep in range(_SWEEPS):
        downwards = sweep % 2 == 0
        for layer in layers if downwards else reversed(layers):
            order = {spot: place for each in layers for place, spot in enumerate(each)}

            def middle(spot: int, order: dict[int, int] = order, downwards: bool = downwards) -> float:  # noqa: FBT001
                beside = spots[spot].above if downwards else spots[spot].below
                return sum(order[each] for each in beside) / len(beside) if beside else order[spot]

            layer.sort(key=middle)


def _places(
    spots: Sequence[_Spot], layers: Sequence[Sequence[int]], box: float
) -> tuple[float, dict[int, tuple[float, float]]]:
    """Return the width of the picture, and the middle of the upper edge of each spot."""
    widths = {spot: _PASSING if spots[spot].job is None else box for layer in layers for spot in layer}
    widest = max(sum(widths[spot] + _ACROSS for spot in layer) for layer in layers)
    places = {}
    for depth, layer in enumerate(layers):
        x = (widest - sum(widths[spot] + _ACROSS for spot in layer)) / 2 + _ACROSS
        for spot in layer:
            places[spot] = (x + widths[spot] / 2, _DOWN / 2 + depth * (_HEIGHT + _DOWN))
            x += widths[spot] + _ACROSS
    return widest + _ACROSS, places


def _route(places: Sequence[tuple[float, float]]) -> Markup:
    """Return a smooth line from the lower edge of the first box to the upper edge of the last one."""
    x, y = places[0][0], places[0][1] + _HEIGHT
    drawn = f"M {x:g} {y:g}"
    for place, (next_x, next_y) in enumerate(places[1:], 1):
        drawn += f" C {x:g} {y + _DOWN * 0.6:g} {next_x:g} {next_y - _DOWN * 0.6:g} {next_x:g} {next_y:g}"
        x, y = next_x, next_y
        if place < len(places) - 1:
            y += _HEIGHT
            drawn += f" L {x:g} {y:g}"
    return Markup('<path d="{}" class="edge"/>').format(drawn)


def _texts(job: GraphJob, seconds: Value, jobs: Sequence[GraphJob]) -> tuple[str, Markup]:
    """Return the two lines in a job's box: its name, and its state with the duration or the variant of the job."""
    several = len({name for each in jobs for name in each.variants}) > 1
    many = f" ({len(job.variants)} variants)" if len(job.variants) > 1 else ""
    parts: list[str | Markup] = [job.state]
    if seconds:
        parts.append(svg.inside(FILTERS["lasting"](seconds)))
    if several and not many:
        parts.append(svg.fitted(job.variants[0], _WIDEST - 2 * _MARGIN - svg.width(f"{job.state} · ", _STATE), _STATE))
    return svg.fitted(f"{job.name}{many}", _WIDEST - 2 * _MARGIN, _NAME), Markup(" · ").join(parts)


def _job(job: GraphJob, texts: tuple[str, Markup], at: tuple[float, float], box: float) -> Markup:
    x, y = at
    marks = [
        Markup("<title>{}: {}, {}</title>").format(job.name, job.state, lists.first_of(job.variants, _NAMED)),
        svg.box((x - box / 2, y), (box, _HEIGHT), f"job {job.state}"),
        svg.text((x, y + 18), texts[0], "name middle"),
        svg.text((x, y + 35), texts[1], "state middle"),
    ]
    return Markup("<g>{}</g>").format(Markup("\n").join(marks))
