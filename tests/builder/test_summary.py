"""A summary follows the plan and the fields of steps, not their names; its figures are those of the reports."""

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import ClassVar

from summaries import accuracy, bench, row
from summaries import summary as built_summary

from engine.builder.job import Job
from engine.builder.summary import Summary, html_latencies
from engine.builder.variant import PlannedVariant
from engine.builder.why import Finding
from engine.feasibility.facts import ModelFacts
from engine.key import Change
from engine.kit.accuracy.report import Agreement, MetricReport, Perplexity
from engine.kit.bench.report import BenchReport
from engine.step import Section, Step, TypedReport
from engine.store.history import HeadlineFigures, MeasuredLatency


@dataclass(frozen=True)
class Times(TypedReport):
    rows: tuple[int, ...]


class Load(Step):
    makes: ClassVar[str] = "loaded"
    carries_model: ClassVar[bool] = True
    report: ClassVar[type[TypedReport] | None] = ModelFacts

    def run(self, out): ...


class Prune(Step):
    makes: ClassVar[str] = "pruned"
    after: ClassVar[str] = "load"

    def run(self, out, *, loaded): ...


class Time(Step):
    makes: ClassVar[str] = "times"
    section: ClassVar[Section | None] = Section.BENCH
    report: ClassVar[type[TypedReport] | None] = Times

    def run(self, out, *, loaded): ...


class Wrap(Step):
    makes: ClassVar[str] = "wrapped"
    delivers: ClassVar[bool] = True

    def run(self, out, *, pruned): ...


JOBS = (
    Job("r", "load", Load(), {}),
    Job("r", "prune", Prune(), {"loaded": "load"}),
    Job("r", "time", Time(), {"loaded": "load"}),
    Job("r", "wrap", Wrap(), {"pruned": "prune"}),
)


def summary(**records):
    by_job = {name: SimpleNamespace(name=name, report=report, report_version=1) for name, report in records.items()}
    return Summary(PlannedVariant(None, JOBS), by_job)


def test_the_model_is_the_last_that_was_made_before_the_package():
    assert summary(load={}, prune={}, time={}, wrap={}).model.name == "prune"
    assert summary(load={}, time={}, wrap={}).model.name == "load"
    assert summary(time={}, wrap={}).model is None


def test_reports_and_facts_are_found_by_what_a_step_is():
    shown = summary(load={"kind": "onnx", "parameters": 3}, time={"rows": [1]}, wrap={})
    assert shown.report(Section.BENCH, Times) == Times(rows=(1,))
    assert shown.report(Section.BENCH, BenchReport) is None
    assert shown.report(Section.VALIDATION, Times) is None
    assert shown.facts == ModelFacts(kind="onnx", parameters=3)
    assert shown.taken(Section.BENCH, "loaded").name == "load"
    assert shown.taken(Section.BENCH, "other") is None
    assert summary().taken(Section.VALIDATION, "loaded") is None


class Count(Time):
    """Reports on the precision of one runtime's model."""

    makes: ClassVar[str] = "counted"
    section: ClassVar[Section | None] = Section.PRECISION


class Pick(Step):
    makes: ClassVar[str] = "picked"
    section: ClassVar[Section | None] = Section.RUNTIME

    def models_of(self):
        return {"model_a": "a", "model_b": "b"}

    def run(self, out, **models): ...


PICKING = (
    Job("r", "load", Load(), {}),
    Job("r", "count", Count(), {"loaded": "load"}),
    Job("r", "prune", Prune(), {"loaded": "load"}),
    Job("r", "pick", Pick(), {"model_a": "count", "model_b": "prune"}),
)


def test_the_report_about_a_model_that_was_not_chosen_is_left_out():
    for chosen, expected in (("a", Times(rows=(1,))), ("b", None), (None, Times(rows=(1,)))):
        reports = {"count": {"rows": [1]}, "pick": {"runtime": chosen}}
        records = {name: SimpleNamespace(name=name, report=each, report_version=1) for name, each in reports.items()}
        picked = Summary(PlannedVariant(None, PICKING), records)
        assert picked.report(Section.PRECISION, Times) == expected


def test_a_summary_is_a_line_at_a_prompt():
    assert repr(built_summary(bench=bench())) == "<Summary m: 1 of 1 job built, 22.8 MB>"


def test_a_summary_is_a_table_of_its_latencies_in_a_notebook():
    text = built_summary(bench=bench())._repr_html_()
    assert text.startswith("<table><caption>Summary m: 1 of 1 job built, 22.8 MB</caption>")
    for cell in ("p95 ms", "batch 1 x sequence 16", "onnxruntime-int8 (ours)", "1.500"):
        assert f">{cell}</t" in text, cell
    assert built_summary()._repr_html_() == "<p>Summary m: 0 of 0 jobs built</p>"


def test_names_are_never_markup():
    rows = (row("<b>", ours=True),)
    text = html_latencies("<i>", BenchReport(threads=1, cpu="c", rows=rows), ())
    assert "&lt;b&gt; (ours)" in text
    assert "<i>" not in text


def test_a_finding_names_its_job_and_the_rows_that_changed():
    job = SimpleNamespace(recipe="m", name="quantize")
    assert repr(Finding(job, "stale", (Change("options.a", "1", "2"),))) == "<Finding m quantize: stale (options.a)>"
    assert repr(Finding(job, "cached")) == "<Finding m quantize: cached>"


def test_the_figures_are_those_of_the_reports():
    report = accuracy(
        0.97,
        0.99,
        agreement=Agreement(0.98, (), 50),
        metric=MetricReport("accuracy", 0.91, 0.92, 50),
        perplexity=Perplexity(ratio=1.01, value=20.2, original=20.0, tokens=9, length=4, stride=2),
    )
    assert built_summary(bench=bench(), validation=report).headline == HeadlineFigures(
        size=22_800_000,
        cosine=0.99,
        worst_cosine=0.97,
        agreement=0.98,
        metrics={"accuracy": 0.91, "perplexity ratio": 1.01},
        latencies=(
            MeasuredLatency(
                place="batch 1 x sequence 16", p50_ms=1.5, interval=(1.5, 1.5), p95_ms=3.0, rows_per_s=1000 / 1.5
            ),
        ),
        device="a CPU, 2 threads",
    )  # fmt: skip


def test_ways_of_calling_and_generated_tokens_are_places_of_their_own():
    here = row("a", ours=True, intervals={"p50_ms": (1.4, 1.7)})
    rows = (here, replace(here, via="triton-grpc"), replace(here, new_tokens=8), row("b", ours=False))
    figures = built_summary(bench=BenchReport(threads=1, cpu="c", rows=rows)).headline
    assert [each.place.removeprefix("batch 1 x sequence 16") for each in figures.latencies] == [
        "",
        " via triton-grpc",
        " + 8 tokens",
    ]
    assert figures.latencies[0].interval == (1.4, 1.7)


def test_what_was_not_measured_is_none():
    assert built_summary().headline == HeadlineFigures()
