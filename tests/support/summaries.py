"""Summaries of builds whose steps have given reports, as read from records; nothing is built for them."""

import json
from types import SimpleNamespace
from typing import ClassVar

from engine.builder.job import Job
from engine.builder.summary import Summary
from engine.kit.accuracy.report import AccuracyReport, Worst
from engine.kit.bench.report import BenchReport, BenchRow
from engine.recipe.schema import ModelSection, Recipe
from engine.step import Section, Step, TypedReport


def row(runtime, *, ours, noise=0.1, kind=BenchRow, **more):
    fields = {"mean_ms": 2.0, "p50_ms": 1.5, "p95_ms": 3.0, "p99_ms": 4.0, "ratio_to": {"pytorch-fp32": 3.25}}
    fields |= {"shape": {"batch": 1, "sequence": 16}, "via": "in-process"}
    return kind(runtime=runtime, ours=ours, runs=100, noise=noise, **{**fields, **more})


def bench(noise=0.1):
    rows = (row("onnxruntime-int8", ours=True, noise=noise), row("pytorch-fp32", ours=False, noise=noise))
    return BenchReport(threads=2, cpu="a CPU", rows=rows)


def accuracy(worst, mean, *, kind=AccuracyReport, **more):
    cosine = Worst(worst=worst, mean=mean, sample="line 8", text="a text")
    return kind(cases=5, kinds={"sample": 5}, random=False, cosine=cosine, **more)


def _teller(about, kind):
    class Tells(Step):
        makes: ClassVar[str] = "table"
        section: ClassVar[Section | None] = about
        report: ClassVar[type[TypedReport] | None] = kind
        carries_model: ClassVar[bool] = True

        def run(self, out): ...

    return Tells


def summary(**reports):
    """Return the summary of a build whose steps have these reports, by section, as read from records."""
    jobs, records = [], {}
    for section, report in reports.items():
        record = SimpleNamespace(
            report=json.loads(json.dumps(report.to_json())), report_version=report.version, size=22_800_000,
            artifact="a", seconds=1.0, peak_bytes=1, anonymous_bytes=1, machine={}, key={}, origin={},
        )  # fmt: skip
        jobs.append(Job("m", f"tell-{section}", _teller(Section(section), type(report))(), {}))
        records[f"tell-{section}"] = record
    recipe = Recipe(name="m", model=ModelSection(source="x"))
    variant = SimpleNamespace(loaded=SimpleNamespace(recipe=recipe, variant=""), jobs=tuple(jobs), name="m")
    return Summary(variant, records)
