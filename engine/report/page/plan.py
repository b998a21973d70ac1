"""The plan as a picture: jobs in layers, each below the jobs whose outputs it reads, with states and durations."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

import networkx as nx
from markupsafe import Markup

from engine.report import graph
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


_Spot = GraphJob | tuple[GraphJob, GraphJob, int]
"""What stands in a layer: a job, or a line from a job to a later one, which passes the layer of that number."""


def picture(plan: nx.DiGraph[GraphJob], seconds: Sequence[Value]) -> Markup:
    """Return the picture, for wide pages if it is wide; `seconds` are the durations of the jobs, in their order."""
    layers, routes = _laid_out(plan)
    jobs = list(plan)
    texts = {job: _texts(job, each, jobs) for job, each in zip(jobs, seconds, strict=True)}
    needed = [max(svg.width(name, _NAME), svg.width(state.striptags(), _STATE)) for name, state in texts.values()]
    box = min(_WIDEST, max([_NARROWEST, *needed]) + 2 * _MARGIN)
    wide, places = _places(layers, box)
    high = len(layers) * (_HEIGHT + _DOWN) + _DOWN
    drawn = [_route([places[spot] for spot in route]) for route in routes]
    drawn += [_job(job, texts[job], places[job], box) for job in jobs]
    label = f"The plan: {lists.counted(len(jobs), 'job')}. The table below has the same jobs."
    drawing = svg.picture(wide, high, label, drawn)
    if wide <= svg.NARROW:
        return drawing
    note = Markup('<p class="note when-narrow">The picture of the plan needs a wider page.</p>')
    return Markup('<div class="when-wide">{}</div>{}').format(drawing, note)


def _laid_out(plan: nx.DiGraph[GraphJob]) -> tuple[list[list[_Spot]], list[list[_Spot]]]:
    """Return the layers of spots, and for each line the spots that it passes."""
    layers: list[list[_Spot]] = [list(layer) for layer in nx.topological_generations(plan)]
    depth = {job: number for number, layer in enumerate(layers) for job in layer}
    lines: nx.DiGraph[_Spot] = nx.DiGraph()
    routes: list[list[_Spot]] = []
    for job, edges in graph.drawn_edges(plan).items():
        for earlier in edges:
            passed = range(depth[earlier] + 1, depth[job])
            for layer in passed:
                layers[layer].append((earlier, job, layer))
            routes.append([earlier, *((earlier, job, layer) for layer in passed), job])
            nx.add_path(lines, routes[-1])
    _untangle(lines, layers)
    return layers, routes


def _untangle(lines: nx.DiGraph[_Spot], layers: Sequence[list[_Spot]]) -> None:
    """Order each layer by the middle of its neighbours, down and up in turn, so that few lines cross."""
    for sweep in range(_SWEEPS):
        downwards = sweep % 2 == 0
        beside = lines.pred if downwards else lines.succ
        for layer in layers if downwards else reversed(layers):
            order = {spot: place for each in layers for place, spot in enumerate(each)}
            middle = {spot: fmean(order[each] for each in beside.get(spot, ()) or [spot]) for spot in layer}
            layer.sort(key=middle.__getitem__)


def _places(layers: Sequence[Sequence[_Spot]], box: float) -> tuple[float, dict[_Spot, tuple[float, float]]]:
    """Return the width of the picture, and the middle of the upper edge of each spot."""
    widths = {spot: box if isinstance(spot, GraphJob) else _PASSING for layer in layers for spot in layer}
    widest = max((sum(widths[spot] + _ACROSS for spot in layer) for layer in layers), default=0.0)
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
