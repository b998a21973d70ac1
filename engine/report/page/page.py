"""The page of `recipe report`: put the last builds of variants, their plans and their histories into one HTML file."""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from engine.builder.findings import Finding
from engine.builder.overview import VariantOverview
from engine.builder.summary import Summary
from engine.report import graph
from engine.report import history as past_builds
from engine.report.page import charts, plan
from engine.report.page.charts import VariantPoint
from engine.report.page.values import FILTERS, Value, per_second
from engine.report.page.variant import PageVariant, place
from engine.report.table import headline_of_precision
from engine.system import regular
from engine.text import lists

_TEMPLATES = Path(__file__).with_name("templates")
_DETAILS = 1_000_000
"""The bytes from which on the page leaves the details of further variants out, so that it stays below 1.5 MB."""


def html(
    summaries: Sequence[Summary], findings: Sequence[Finding], overviews: Sequence[VariantOverview], version: str
) -> str:
    """Return the page. `findings` are those of all variants, and `overviews` has one item for each summary."""
    variants = [_variant(number, summary, overviews[number], findings) for number, summary in enumerate(summaries)]
    environment = _environment()
    script, style = (regular.read_text(_TEMPLATES / name) for name in ("page.js", "page.css"))
    details = _details(environment, variants)
    return environment.get_template("page.html").render(
        title=", ".join(dict.fromkeys(str(each.variant.loaded.path.name) for each in summaries)),
        variants=variants,
        details=details,
        left_out=len(variants) - len(details),
        scatter=_scatter(variants),
        front=_front(variants),
        plan=_shared_plan(findings) if len(variants) > 1 else None,
        states=Counter(each.overview.state for each in variants),
        metrics=list(dict.fromkeys(name for each in variants for name in each.overview.figures.metrics)),
        version=version,
        script=Markup(script),  # noqa: S704 - a file of this package
        style=Markup(style),  # noqa: S704 - the same
        digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def _environment() -> Environment:
    loader = FileSystemLoader(_TEMPLATES)
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(FILTERS)
    environment.globals.update(
        place=place,
        per_second=per_second,
        latencies=partial(charts.for_any_page, charts.latencies),
        throughput=partial(charts.for_any_page, charts.throughput),
        builds=partial(charts.for_any_page, charts.builds),
        when=past_builds.when,
        causes=_causes,
        counted=lists.counted,
    )
    return environment


def _causes(build: Value) -> list[str]:
    """Return the jobs of a build that ran, each with the rows that changed."""
    from engine.store.history import PastBuild

    raw = build.raw
    fields = {name: each for name, each in raw.items() if name != "seconds"} if isinstance(raw, Mapping) else {}
    return list(past_builds.jobs(PastBuild.from_json(fields)))


def _variant(number: int, summary: Summary, overview: VariantOverview, findings: Iterable[Finding]) -> PageVariant:
    own = [finding for finding in findings if finding.job.recipe == summary.variant.name]
    return PageVariant(
        overview=overview,
        shown=Value(summary.to_json(), f"show.{number}"),
        past=Value({"builds": past_builds.as_json(overview.builds)}, f"history.{number}"),
        jobs=graph.jobs(own),
        anchor=f"variant-{number}",
        plan_jobs=summary.variant.jobs,
        precision=headline_of_precision(summary) or "",
    )


def _details(environment: Environment, variants: Sequence[PageVariant]) -> dict[str, Markup]:
    """Return the sections of the variants by anchor, those of the Pareto front first, as far as the page has room."""
    template = environment.get_template("variant.html")
    fast = _front(variants)
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
    points = []
    for each in variants:
        latency, cosine = each.overview.figures.latency(commonest), each.overview.figures.cosine
        if latency is not None and cosine is not None:
            points.append(VariantPoint(each.overview.name, latency.p50_ms, cosine, each.anchor))
    return points


def _front(variants: Sequence[PageVariant]) -> set[str]:
    return {point.anchor for point in charts.front(_points(variants))} if len(variants) > 1 else set()


def _scatter(variants: Sequence[PageVariant]) -> Markup | None:
    """Return the picture of accuracy against latency; None where one point says nothing."""
    points = _points(variants)
    if len(points) < 2:  # noqa: PLR2004 - one point says nothing
        return None
    label = f"Accuracy against latency of {lists.counted(len(points), 'variant')}. The table has the same figures."
    return charts.for_any_page(charts.scatter, points, label)


def _shared_plan(findings: Sequence[Finding]) -> Markup | None:
    """Return the picture of all jobs, those that variants share once; None if there are too many."""
    jobs = graph.jobs(findings)
    if len(jobs) > plan.MOST:
        return None
    return plan.picture(jobs, [Value(None, "")] * len(jobs))
