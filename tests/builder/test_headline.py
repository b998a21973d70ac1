"""The figures by which people compare builds."""

from dataclasses import replace

from summaries import accuracy, bench, row, summary

from engine.kit.accuracy.report import Agreement, MetricReport, Perplexity
from engine.kit.bench.report import BenchReport
from engine.store.history import HeadlineFigures, MeasuredLatency


def test_the_figures_are_those_of_the_reports():
    report = accuracy(
        0.97,
        0.99,
        agreement=Agreement(0.98, (), 50),
        metric=MetricReport("accuracy", 0.91, 0.92, 50),
        perplexity=Perplexity(ratio=1.01, value=20.2, original=20.0, tokens=9, length=4, stride=2),
    )
    assert summary(bench=bench(), validation=report).headline == HeadlineFigures(
        size=22_800_000,
        cosine=0.99,
        worst_cosine=0.97,
        agreement=0.98,
        metrics={"accuracy": 0.91, "perplexity ratio": 1.01},
        latencies=(
            MeasuredLatency(place="batch 1 x sequence 16", p50_ms=1.5, interval=(1.5, 1.5), p95_ms=3.0),
        ),
        device="a CPU, 2 threads",
    )  # fmt: skip


def test_ways_of_calling_and_generated_tokens_are_places_of_their_own():
    here = row("a", ours=True, intervals={"p50_ms": (1.4, 1.7)})
    rows = (here, replace(here, via="triton-grpc"), replace(here, new_tokens=8), row("b", ours=False))
    figures = summary(bench=BenchReport(threads=1, cpu="c", rows=rows)).headline
    assert [each.place.removeprefix("batch 1 x sequence 16") for each in figures.latencies] == [
        "",
        " via triton-grpc",
        " + 8 tokens",
    ]
    assert figures.latencies[0].interval == (1.4, 1.7)


def test_what_was_not_measured_is_none():
    assert summary().headline == HeadlineFigures()
