"""Headline: the few figures of a variant by which people compare builds, variants and commits."""

from __future__ import annotations

from engine.builder.summary import Summary
from engine.kit.accuracy.report import AccuracyReport
from engine.kit.bench.report import BenchReport, BenchRow, place_of
from engine.step import Section
from engine.store.history import HeadlineFigures, MeasuredLatency


def of(summary: Summary) -> HeadlineFigures:
    """Return the headline figures of a summary; a figure is None where the store has no measurement."""
    bench = summary.report(Section.BENCH, BenchReport)
    accuracy = summary.report(Section.VALIDATION, AccuracyReport)
    accuracy = accuracy or summary.report(Section.VALIDATION_ONNX, AccuracyReport)
    rows = () if bench is None else bench.rows
    return HeadlineFigures(
        size=None if summary.model is None else summary.model.size,
        cosine=None if accuracy is None or accuracy.cosine is None else accuracy.cosine.mean,
        worst_cosine=None if accuracy is None or accuracy.cosine is None else accuracy.cosine.worst,
        agreement=None if accuracy is None or accuracy.agreement is None else accuracy.agreement.share,
        metrics={} if accuracy is None else _metrics(accuracy),
        latencies=tuple(_latency(row) for row in rows if row.ours or row.other_way),
        device="" if bench is None or not rows else bench.device,
        warnings=summary.warnings,
    )


def _metrics(accuracy: AccuracyReport) -> dict[str, float]:
    metrics = {}
    if accuracy.metric is not None:
        metrics[accuracy.metric.name] = accuracy.metric.value
    if accuracy.perplexity is not None and accuracy.perplexity.ratio is not None:
        metrics["perplexity ratio"] = accuracy.perplexity.ratio
    if accuracy.rank is not None:
        metrics["rank correlation"] = accuracy.rank.worst
    return metrics


def _latency(row: BenchRow) -> MeasuredLatency:
    """Return the figures of a row of the recipe's own model, run in either way."""
    tokens = "" if row.new_tokens is None else f" + {row.new_tokens} tokens"
    low, high = row.interval("p50_ms")
    place = f"{place_of(row)}{tokens}"
    return MeasuredLatency(place=place, p50_ms=row.p50_ms, interval=(low, high), p95_ms=row.p95_ms, busy=row.is_busy)
