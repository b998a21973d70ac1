"""Lines of the table beside its rows: the runtime that was chosen, precisions, times on a GPU, lengths of samples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from engine.builder.job import read_report
from engine.builder.summary import Summary
from engine.builder.why import Finding
from engine.kit.bench.interleaving import PAUSE_MS
from engine.kit.bench.report import BenchReport, BenchRow, speed_up
from engine.kit.bench.sample_report import Batching, SampleFigures, SampleLengths
from engine.kit.choice.report import ChoiceReport
from engine.kit.quantization.report import HalfReport, Kept, QdqReport, QuantizeReport
from engine.report import grid
from engine.runtimes.recipes import IN_PROCESS
from engine.step import Section
from engine.text import lists

_HEADER = (
    "shape", "runtime", "enqueue", "GPU compute", "H2D pageable", "H2D pinned", "D2H pageable", "D2H pinned",
    "latency pageable", "latency pinned", "spin wait",
)  # fmt: skip
_TEXTS = 2
"""The number of columns that are aligned on the left."""
_NODES = 3
"""Upper limit of the nodes that one line of the report names."""
_SHAPES = 4
"""Upper limit of the shapes that the line of a model names; `--json` has all."""


def choice_lines(summary: Summary) -> list[str]:
    """Return the line about the chosen runtime, and the lines about the other candidates; [] without a choice."""
    report = summary.report(Section.RUNTIME, ChoiceReport)
    if report is None:
        return []
    runtime = summary.variant.loaded.recipe.target.runtime
    return [report.headline(runtime), *(f"  {line}" for line in report.lines())]


def choice_of_job(finding: Finding) -> list[str]:
    """Return the choice that the record of a cached job holds; [] for any other job."""
    step, record = finding.job.step, finding.record
    if record is None or step.section is not Section.RUNTIME:
        return []
    report = read_report(type(step), record)
    return [report.headline("chosen"), *report.lines()] if isinstance(report, ChoiceReport) else []


def model_lines(bench: BenchReport) -> Iterator[str]:
    """Yield a line for each model: calls after a pause, rows per second, and its start.

    Nothing is yielded for a report of an earlier version of this program, which has no such figures.
    """
    by_model: dict[tuple[str, bool, str], list[BenchRow]] = {}
    for row in bench.rows:
        if row.paused_ms is not None or (bench.starts and row.samples is None):
            by_model.setdefault((row.runtime, row.ours, row.via), []).append(row)
    if by_model:
        shapes = [lists.extents(row.shape.values()) for row in next(iter(by_model.values()))]
        what = f"p50 after a pause of {PAUSE_MS} ms with its 95 % interval, rows/s, and one start"
        yield f"these calls are hot, in a loop; below stand {what}, at {_by_shape(shapes)}; first call at {shapes[0]}:"
    starts = {(start.runtime, start.ours, IN_PROCESS): str(start) for start in bench.starts}
    for model, rows in by_model.items():
        paused = _by_shape([_paused(row) for row in rows])
        speed = _by_shape([f"{row.rows_per_s:,.0f}" for row in rows if row.rows_per_s is not None])
        parts = [f"paused {paused}", *([f"{speed} rows/s"] if speed else []), *filter(None, [starts.get(model)])]
        name, via = rows[0].title, rows[0].via
        yield f"  {name if via == IN_PROCESS else f'{name} {via}'}: {'; '.join(parts)}"


def _paused(row: BenchRow) -> str:
    if row.paused_ms is None:
        return "none: a call fills the turn"
    low, high = row.interval("paused_ms")
    return f"{row.paused_ms:.3f} ms ({low:.3f} to {high:.3f})"


def _by_shape(values: Sequence[str]) -> str:
    more = f" and {len(values) - _SHAPES} more" if len(values) > _SHAPES else ""
    return " / ".join(values[:_SHAPES]) + more


def device_lines(bench: BenchReport) -> Iterator[str]:
    """Yield a table with a row for each model and shape whose GPU was measured; nothing where none was."""
    rows = [(row, row.device, lists.extents(row.shape.values())) for row in bench.rows if row.device is not None]
    if not rows:
        return
    yield "one call on the GPU by CUDA events, medians in ms, with trtexec's names (latency = H2D + GPU compute + D2H):"
    table: list[tuple[str, ...]] = [_HEADER]
    for row, times, shape in rows:
        numbers = (
            times.enqueue_ms, times.gpu_compute_ms, times.h2d_pageable_ms, times.h2d_pinned_ms, times.d2h_pageable_ms,
            times.d2h_pinned_ms, times.latency_pageable_ms, times.latency_pinned_ms, times.spin_wait_ms,
        )  # fmt: skip
        table.append((shape, row.title, *(f"{number:.3f}" for number in numbers)))
    places = [grid.LEFT] * _TEXTS + [grid.RIGHT] * (len(_HEADER) - _TEXTS)
    yield from (f"  {line}" for line in grid.lines(table, places, width=grid.KEPT - 2))
    for row, times, shape in rows:
        rates = (
            f"{rate:,.1f} calls/s with {lists.counted(int(streams), 'stream')}"
            for streams, rate in times.queries_per_s.items()
        )
        yield f"  {row.title} at {shape}: {', '.join(rates)}"


def sample_lines(summary: Summary, bench: BenchReport) -> Iterator[str]:
    """Yield the lines below the table's rows about each shape of samples."""
    for lengths in bench.samples:
        rows = [row for row in bench.rows if row.samples is not None and row.shape == lengths.shape]
        half = len(rows) // 2  # the rows in the order of arrival, then the same models sorted by length
        yield _about(lengths, [row.samples for row in rows if row.samples is not None])
        for arrival, by_length in zip(rows[:half], rows[half:], strict=True):
            yield f"  {arrival.title}: {_gain(arrival, by_length)}"
        yield f"  texts/s by batch size: {'; '.join(_sizes(lengths.batchings))}"
        fastest = lengths.fastest()
        if fastest is not None:
            order = "" if fastest.batch == 1 else ", sorted" if fastest.order == "sorted" else ", in arrival order"
            yield f"  fastest measured: batches of {fastest.batch}{order}"
        proposal = summary.proposal(lengths)
        if proposal:
            yield "  for these lengths, the recipe could say:"
            yield from (f"    {line}" for line in proposal.splitlines())


def _about(lengths: SampleLengths, figures: Sequence[SampleFigures]) -> str:
    paddings = {each.order: each.padding for each in figures}
    count = lists.counted(lengths.texts, "sample")
    chosen = count if lengths.texts == lengths.of_texts else f"{count} of {lengths.of_texts:,}"
    tokens = f"{lengths.tokens:,} tokens, the longest {lengths.longest}"
    order = f"padding {paddings['arrival']:.1%} in arrival order, {paddings['sorted']:.1%} sorted by length"
    return f"{chosen}: {tokens}; in batches of {_batch(lengths)}, {order}"


def _batch(lengths: SampleLengths) -> str:
    return " x ".join(str(size) for size in lengths.shape.values() if isinstance(size, int)) or "1"


def _gain(first: BenchRow, second: BenchRow) -> str:
    arrival, by_length = first.samples, second.samples
    if arrival is None or by_length is None or by_length.gain is None or by_length.gain_interval is None:
        return ""
    gain = speed_up(by_length.gain, by_length.gain_interval, busy=first.is_busy or second.is_busy)
    return f"{_throughput(arrival)} in arrival order, {_throughput(by_length)} sorted: {gain}"


def _throughput(figures: SampleFigures) -> str:
    return f"{figures.texts_per_s:,.1f} texts/s ({figures.tokens_per_s:,.0f} tokens/s)"


def _sizes(batchings: Sequence[Batching]) -> Iterator[str]:
    """Yield the texts per second of each measured batch size: "4: 310.0 in arrival order, 420.0 sorted"."""
    for size in dict.fromkeys(each.batch for each in batchings):
        speeds = {each.order: f"{each.texts_per_s:,.1f}" for each in batchings if each.batch == size}
        both = f"{speeds['arrival']} in arrival order, {speeds['sorted']} sorted" if len(speeds) > 1 else ""
        yield f"{size}: {both or next(iter(speeds.values()))}"


def precision_lines(report: QuantizeReport) -> list[str]:
    """Return the precisions in a graph for a GPU, as lines; of a graph for a CPU, why it was left in fp32."""
    if isinstance(report, HalfReport):
        work = "no matrix products to be" if report.share is None else f"{report.share:.0%} of the MatMul work"
        return _half(report, f"{work} in {report.precision}")
    if not isinstance(report, QdqReport):
        return [] if report.unquantized is None else [f"left in fp32: {report.unquantized}"]
    kind, quantized = report.precision, report.quantized
    if quantized is None:
        return _half(report.rest, f"nothing in {kind}, all in fp16: {report.unquantized}")
    work = "MatMul and Conv work" if kind == "int8" else "MatMul work"
    share = f"{quantized.share:.0%} of the {work} in {kind}, the rest in fp16"
    left = Counter(each.reason for each in quantized.left)
    lines = [*_half(report.rest, share), *(f"  not {kind}: {n} of its layers ({why})" for why, n in left.items())]
    convolutions = quantized.convolutions
    return [*lines, f"  not {kind}: {convolutions} convolutions, and not counted above"] if convolutions else lines


def _half(report: HalfReport | None, head: str) -> list[str]:
    if report is None:
        return [head]
    lines = [head, *(f"  in fp32: {_kept(each)}" for each in report.kept)]
    if (counts := report.graph) is not None:
        nodes = f"{lists.counted(counts.all, 'node')}, {counts.casts} of them Casts"
        lines.append(f"  graph: {nodes}; {counts.computing} compute on the GPU, before any fusion by the runtime")
    return lines


def _kept(group: Kept) -> str:
    operators = lists.counts(group.operators)
    reached = "" if group.largest is None else f"; up to {_value(group.largest)}, {_names(group.nodes)}"
    return f"{operators} ({group.reason}{reached})"


def _names(nodes: Mapping[str, float | str]) -> str:
    """Return names and values of at most three nodes with the largest values, and how many more nodes there are."""
    furthest: Sequence[str] = sorted(nodes, key=lambda name: -_rank(nodes[name]))[:_NODES]
    more = f" and {len(nodes) - _NODES} more" if len(nodes) > _NODES else ""
    return ", ".join(f"{name} {_value(nodes[name])}" for name in furthest) + more


def _value(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:g}"


def _rank(value: float | str) -> float:
    return float("inf") if isinstance(value, str) else value
