"""The page of `recipe report`: put the last builds of variants, their plans and their histories into one HTML file."""

from __future__ import annotations

import base64
import hashlib
import itertools
import os
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from engine.builder.summary import Summary
from engine.builder.why import Finding
from engine.errors import UsageError
from engine.report import graph
from engine.report import history as past_builds
from engine.report.overview import VariantOverview
from engine.report.page import charts, plan, tables
from engine.report.page.charts import VariantPoint
from engine.report.page.values import FILTERS, NOTHING, Value
from engine.report.page.variant import PageVariant, place
from engine.report.table import headline_of_precision
from engine.store import disk
from engine.system import regular
from engine.text import lists, redaction

_TEMPLATES = Path(__file__).with_name("templates")
_DETAILS = 1_000_000
"""The bytes from which on the page leaves the details of further variants out, so that it stays below 1.5 MB."""


def html(
    summaries: Sequence[Summary], findings: Sequence[Finding], overviews: Sequence[VariantOverview], version: str
) -> str:
    """Return the page. `findings` are those of all variants, and `overviews` has one item for each summary."""
    listed = graph.of(findings)
    unknown = [NOTHING] * len(listed)  # a job that variants share ran for one of them
    variants = [_variant(number, summary, overviews[number], findings) for number, summary in enumerate(summaries)]
    environment = templates()
    points = _points(variants)
    fast = {point.anchor for point in charts.front(points)} if len(variants) > 1 else set()
    details = _details(environment, variants, fast)
    return rendered(
        environment,
        "page.html",
        title=", ".join(dict.fromkeys(str(each.variant.loaded.path.name) for each in summaries)),
        variants=variants,
        details=details,
        left_out=len(variants) - len(details),
        scatter=scatter(points, "variant", ("p50 in ms", "cosine")),
        undrawn=_undrawn(len(points), len(variants)),
        table=tables.variants(variants, details, fast),
        plan=plan.picture(listed, unknown) if len(listed) <= plan.MOST else None,
        jobs=tables.jobs(listed, unknown, "all variants"),
        states=Counter(each.overview.state for each in variants),
        version=version,
    )


def rendered(environment: Environment, template: str, **fields: object) -> str:
    """Return a whole page of a template that extends base.html, with this program's script and style sheet in it."""
    script, style = (regular.read_text(_TEMPLATES / name) for name in ("page.js", "page.css"))
    return environment.get_template(template).render(
        fields,
        script=Markup(script),  # noqa: S704 - a file of this package
        style=Markup(style),  # noqa: S704 - the same
        digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def write(page: str, path: Path) -> None:
    """Replace a file in one step. Raises UsageError for a folder that is missing, and for a place that is no file."""
    if path.exists() and not path.is_file():
        raise UsageError(f"{path} is no file", hint="name another file")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"there is no folder {path.absolute().parent}", hint="make it, or name another file")
    disk.replace(path, redaction.redacted(page).encode(), fresh=path.with_name(f".{path.name}-{os.getpid()}"))


def templates() -> Environment:
    """Return the templates of pages, with their filters and pictures."""
    loader = FileSystemLoader(_TEMPLATES)
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(FILTERS)
    environment.globals.update(
        place=place,
        latencies=partial(charts.for_any_page, charts.latencies),
        throughput=partial(charts.for_any_page, charts.throughput),
        builds=partial(charts.for_any_page, charts.builds),
        tables=tables,
        counted=lists.counted,
    )
    return environment


def _variant(number: int, summary: Summary, overview: VariantOverview, findings: Iterable[Finding]) -> PageVariant:
    own = [finding for finding in findings if finding.job.recipe == summary.variant.name]
    return PageVariant(
        overview=overview,
        shown=Value(summary.to_json(), f"show.{number}"),
        past=Value({"builds": past_builds.as_json(overview.builds)}, f"history.{number}"),
        jobs=graph.of(own),
        anchor=f"variant-{number}",
        plan_jobs=summary.variant.jobs,
        precision=headline_of_precision(summary) or "",
    )


def _details(environment: Environment, variants: Sequence[PageVariant], fast: Collection[str]) -> dict[str, Markup]:
    """Return the sections of the variants by anchor, the `fast` ones first, as far as the page has room."""
    template = environment.get_template("variant.html")
    sections: dict[str, Markup] = {}
    size = 0
    for variant in sorted(variants, key=lambda each: each.anchor not in fast):
        section = template.render(v=variant, alone=len(variants) == 1)
        size += len(section.encode())
        if sections and size > _DETAILS:
            break
        sections[variant.anchor] = Markup(section)  # noqa: S704 - the template escapes
    return sections


def _points(variants: Sequence[PageVariant]) -> list[VariantPoint]:
    """Return the variants that were measured at the commonest place, with their accuracy."""
    places = Counter(each.overview.figures.latencies[0].place for each in variants if each.overview.figures.latencies)
    commonest = places.most_common(1)[0][0] if places else ""
    same = len(_common([each.overview.name for each in variants]))
    points = []
    for each in variants:
        name, figures = each.overview.name, each.overview.figures
        latency = figures.latency(commonest)
        if latency is not None and figures.cosine is not None:
            points.append(VariantPoint(name, latency.p50_ms, figures.cosine, each.anchor, name[same:] or name))
    return points


def _common(names: Sequence[str]) -> str:
    """Return the words, each with its hyphen, with which all names begin."""
    words = itertools.takewhile(
        lambda each: len(set(each)) == 1, zip(*(name.split("-") for name in names), strict=False)
    )
    return "".join(f"{word}-" for word, *_ in words)


def scatter(points: Sequence[VariantPoint], what: str, titles: tuple[str, str]) -> Markup | None:
    """Return the picture of accuracy against latency of variants or trials; None where one point says nothing."""
    if len(points) < 2:  # noqa: PLR2004 - one point says nothing
        return None
    label = f"Accuracy against latency of {lists.counted(len(points), what)}. The table has the same figures."
    return charts.for_any_page(partial(charts.scatter, titles=titles), points, label)


def _undrawn(points: int, variants: int) -> str:
    """Return why the picture of accuracy against latency lacks variants or is missing; "" if it shows all."""
    if points == variants > 1:
        return ""
    if variants == 1:
        return "A picture of accuracy against latency compares variants, and here is one variant only."
    if points == 0:
        return "There is no picture of accuracy against latency: no variant has both a latency and a cosine yet."
    missing = "There is no picture of accuracy against latency"
    what = missing if points == 1 else "The picture does not show all variants"
    return f"{what}: {points} of {variants} have a latency at the same shape and a cosine."
