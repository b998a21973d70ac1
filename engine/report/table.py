"""The table at the end of a build: sizes, accuracy, and latencies beside those of the rivals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine import reporting
from engine.builder.summary import NOT_ON_DEVICE, Summary
from engine.kit.accuracy.report import AccuracyReport
from engine.kit.bench.report import BenchReport, BenchRow, ServerReport
from engine.kit.choice.report import ChoiceReport
from engine.kit.quantization.report import QuantizeReport
from engine.report import grid, plans, table_lines
from engine.reporting import Number
from engine.runtimes import registry
from engine.runtimes.recipes import IN_PROCESS
from engine.runtimes.tensorrt.report import EngineReport
from engine.server.installation import KIND_NAMES
from engine.step import Section
from engine.text import sizes

_BEFORE, _BEHIND = ("shape", "runtime", "via", "size", "cosine"), ("speed-up",)
"""The columns of the table that stand before the measured numbers, and the columns that stand after them."""
_NAMES = ("shape", "runtime", "via")
"""The left-aligned columns."""
_SPARE = {"cosine": 3, "mean": 2, "size": 1}
"""Columns for which a narrow table has no room, the largest number first. The cosine stands below the table, too."""
_USUAL = "ms"
"""The unit of all columns without a unit in their title; the line below the table names this unit."""


def tables(summaries: Sequence[Summary]) -> str:
    """Return the table of every variant that has been measured or validated, and whose last build did not fail."""
    shown_sections = (
        (Section.BENCH, BenchReport),
        (Section.VALIDATION, AccuracyReport),
        (Section.VALIDATION_ONNX, AccuracyReport),
        (Section.RUNTIME, ChoiceReport),
        (Section.ENGINE, EngineReport),
    )
    return "".join(
        f"{table(summary)}\n"
        for summary in summaries
        if summary.head.failed is None and any(summary.report(section, kind) for section, kind in shown_sections)
    )


def table(summary: Summary) -> str:
    """Return the table of one variant: latencies in milliseconds, speed-ups as ratios of medians, accuracy."""
    bench = summary.report(Section.BENCH, BenchReport)
    validated = summary.report(Section.VALIDATION, AccuracyReport)
    checked = summary.report(Section.VALIDATION_ONNX, AccuracyReport)
    headline = headline_of_precision(summary)
    size = f", {sizes.decimal(summary.model.size)}" if summary.model else ""
    name, runtime = summary.variant.loaded.recipe.name, summary.runtime
    lines = [
        f"{name}: {summary.precision} for {', '.join(summary.devices)} with {runtime}{size}",
        *summary.about,
        *filter(None, [headline]),
        *table_lines.choice_lines(summary),
    ]
    if bench is not None and bench.rows:
        lines += _measured(summary, bench, validated)
    quantized = summary.report(Section.PRECISION, QuantizeReport)
    if quantized is not None:
        lines += table_lines.precision_lines(quantized)
    engine = summary.report(Section.ENGINE, EngineReport)
    if engine is not None:
        lines += plans.lines(engine)
    if validated is not None:
        lines += _validation(validated)
    elif checked is not None:  # no machine with the device has run the model yet
        emulated = f", {checked.emulated} emulated" if checked.emulated else ""
        lines += [f"{NOT_ON_DEVICE}; ONNX on the CPU{emulated}:", *_validation(checked)]
    return "\n".join(lines) + "\n"


def _measured(summary: Summary, bench: BenchReport, validated: AccuracyReport | None) -> list[str]:
    """Return the aligned rows of a bench report, and the lines below the rows: the device, the noise and the server."""
    columns = {name: number for row in bench.rows for name, number in reporting.numbers(type(row)).items()}
    titles = (each.label if each.unit == _USUAL else f"{each.label} {each.unit}".rstrip() for each in columns.values())
    header = (*_BEFORE, *titles, *_BEHIND)
    rows = [_row(summary, bench, row, columns, validated) for row in bench.rows]
    blank = [""] * len(columns)
    rows += [
        (_sizes(each.shape), each.runtime, IN_PROCESS, "", "", *blank, "not measured") for each in bench.unmeasured
    ]
    shown = _without_one_way([header, *_grouped(rows)])
    layout = [grid.Column(right=title not in _NAMES, spare=_SPARE.get(title, 0)) for title in shown[0]]
    lines = [
        *grid.lines(shown, layout, width=grid.KEPT),
        *map(str, bench.unmeasured),
        *_generated(bench.rows),
        *(f"CUDA graph for {_sizes(row.shape)}: {row.graph}" for row in bench.rows if row.graph is not None),
        f"latencies in {_USUAL}, interleaved in one run on {bench.device_and_clocks}; {bench.noise_in_words}",
        *([] if bench.server is None else [_server(bench.server)]),
        *table_lines.device_lines(bench),
        *table_lines.sample_lines(summary, bench),
    ]
    return [*lines, *bench.warnings]


def _server(server: ServerReport) -> str:
    triton = f"Triton {server.version} ({KIND_NAMES[server.kind]})"
    return f"via triton: {server.asked} on {triton}, one call at a time"


def headline_of_precision(summary: Summary) -> str | None:
    """Return how many operators reached the recipe's precision, as a line; None for fp32, and if it is not known."""
    recipe = summary.variant.loaded.recipe
    reports = (summary.report(each, AccuracyReport) for each in (Section.VALIDATION, Section.VALIDATION_ONNX))
    work = next((report.work for report in reports if report is not None and report.work is not None), None)
    if work is None or summary.precision == "fp32":
        return None
    weights_only = registry.of(recipe).weights_only(recipe)
    return work.headline(summary.precision, weights_only=weights_only)


def _row(
    summary: Summary,
    bench: BenchReport,
    row: BenchRow,
    columns: Mapping[str, Number],
    validated: AccuracyReport | None,
) -> tuple[str, ...]:
    shape = _sizes(row.shape)
    if row.new_tokens is not None:
        shape += f" + {row.new_tokens}"
    if row.samples is not None and row.samples.order == "sorted":
        shape += " sorted"
    values = {name: getattr(row, name, None) for name in columns}
    cells = ["" if value is None else columns[name].text(value) for name, value in values.items()]
    ours = bench.ours_beside(row)
    speed_up = "" if row.ours or ours is None else ours.speed_up(row)
    if row.ours or row.other_way:
        size = sizes.decimal(summary.model.size) if summary.model else ""
        cosine = f"{validated.cosine.mean:.4f}" if validated is not None and validated.cosine is not None else ""
        return (shape, row.title, row.via, size, cosine, *cells, speed_up)
    record = summary.taken(Section.BENCH, _rival_of(row.runtime))
    size = sizes.decimal(record.size) if record else ""
    return (shape, row.title, row.via, size, "", *cells, speed_up)


def _sizes(shape: Mapping[str, int | str]) -> str:
    return " x ".join(str(extent) for extent in shape.values())


def _rival_of(name: str) -> str:
    """Return the name of the step output, such as "checkpoint", that the rival called `name` in the table runs."""
    runtimes = (runtime for runtime in registry.rivals() if name.startswith(f"{runtime}-"))
    return registry.find(max(runtimes, key=len, default=name)).rival_of or "checkpoint"


def _generated(rows: Sequence[BenchRow]) -> list[str]:
    """Return a line about generated text: the tokens of an answer, and the tokens per second of the built model."""
    ours = [row for row in rows if row.ours and row.new_tokens is not None]
    if not ours:
        return []
    speeds = ", ".join(f"{row.tokens_per_s:,.0f}" for row in ours)
    return [f"each call is a whole answer of {ours[0].new_tokens} new tokens; ours make {speeds} tokens a second"]


def _without_one_way(rows: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return the rows of the table; the column `via` is left out where all rows were measured in process."""
    index = _BEFORE.index("via")
    if any(row[index] != IN_PROCESS for row in rows[1:]):
        return list(rows)
    return [(*row[:index], *row[index + 1 :]) for row in rows]


def _grouped(rows: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return the rows of the table; a row's shape is left out where the row above has the same shape."""
    shown: list[tuple[str, ...]] = []
    last = ""
    for row in rows:
        shown.append(row if row[0] != last else ("", *row[1:]))
        last = row[0]
    return shown


def _validation(report: AccuracyReport) -> list[str]:
    drawn = "cases of random tensors" if report.random else "cases"
    lines = (*reporting.lines(report), *(f"note: {note}" for note in report.notes))
    return [f"{report.cases} {drawn} against the original model:", *(f"  {line}" for line in lines)]
