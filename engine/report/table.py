"""Records -> the table that a build ends with: size, accuracy, and latency against what the user had."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from engine.builder.summary import Summary
from engine.report import precisions
from engine.runtimes import registry
from engine.step import Section

_NOISY = 0.5
"""From here on, the middle half of the rounds differs by half of the median: busy neighbours, not models."""
_KINDS = {"path": "on the PATH", "container": "in a container", "pip": "installed by pip"}
_HEADER = ("shape", "runtime", "via", "size", "cosine", "mean", "p50", "p95", "p99", "speed-up")


def tables(summaries: Sequence[Summary]) -> str:
    """Return the table of every variant that has been measured or validated."""
    told = (Section.BENCH, Section.VALIDATION, Section.VALIDATION_ONNX)
    shown = [table(each) for each in summaries if any(each.report(section) for section in told)]
    return "".join(text + "\n" for text in shown)


def table(summary: Summary) -> str:
    """Return the measured rows of one variant as aligned text; milliseconds, speed-ups as ratios of medians."""
    bench = summary.report(Section.BENCH)
    rows = [_row(summary, row) for row in bench.get("rows", [])]
    lines = [_title(summary)]
    if rows:
        lines += _aligned(_without_one_way([_HEADER, *_grouped(rows)]))
        lines += _generated(bench["rows"])
        noise = max(row["noise"] for row in bench["rows"])
        lines.append(f"latencies in ms, interleaved in one run on {_where(bench)}; noise up to {noise:.0%}")
        lines += _server(bench.get("server"))
        if noise > _NOISY:
            lines.append("the machine was busy: these numbers are no ground to stand on; --force bench measures again")
    lines += precisions.lines(summary.report(Section.PRECISION))
    if summary.report(Section.VALIDATION):
        lines += _validation(summary.report(Section.VALIDATION))
    else:  # the device has not been there yet
        lines += _on_the_cpu(summary.report(Section.VALIDATION_ONNX))
    return "\n".join(lines) + "\n"


def _where(bench: Mapping[str, Any]) -> str:
    """Return what the latencies were measured on; of a GPU with what its clocks did meanwhile, where that is known."""
    gpu = bench.get("gpu")
    if gpu is None:
        return f"{bench['cpu']}, {bench['threads']} thread{'s' if bench['threads'] != 1 else ''}"
    least, greatest = gpu.get("sm_mhz", (None, None))
    if least is None:
        return f"{gpu['name']}, its clocks not known"
    return f"{gpu['name']} at {least} MHz" if gpu.get("steady") else f"{gpu['name']} at {least} to {greatest} MHz"


def _server(server: Mapping[str, Any] | None) -> list[str]:
    """Return which server answered, and what of it is not Triton's own; nothing where none was asked."""
    if server is None:
        return []
    triton = f"Triton {server['version']} ({_KINDS[server['kind']]})"
    line = f"via triton: {server['asked']} on {triton}, one call at a time"
    aside = "with a stand-in in Python for Triton's ONNX Runtime backend, which comes with its containers alone"
    return [line, *([aside] if server["stand_in"] else [])]


def size_in_words(size: int) -> str:
    """Return a size in bytes as people read it, in powers of ten."""
    return f"{size / 1e6:.1f} MB" if size >= 1e5 else f"{size / 1e3:.1f} kB"  # noqa: PLR2004 - below it reads 0.0 MB


def _title(summary: Summary) -> str:
    recipe = summary.variant.loaded.recipe
    size = f", {size_in_words(summary.model.size)}" if summary.model else ""
    return (
        f"{recipe.name}: {recipe.precision} for {', '.join(recipe.target.devices)} with {recipe.target.runtime}{size}"
    )


def _row(summary: Summary, row: Mapping[str, Any]) -> tuple[str, ...]:
    shape = " x ".join(str(extent) for extent in row["shape"].values())
    if "new_tokens" in row:
        shape += f" + {row['new_tokens']}"
    times = [f"{row[name]:.3f}" for name in ("mean_ms", "p50_ms", "p95_ms", "p99_ms")]
    if row["ours"]:
        return (shape, row["runtime"], row["via"], *_ours(summary), *times, "")
    record = summary.taken(Section.BENCH, _rival_of(row["runtime"]))
    ratio = _ratio_of_ours(summary, row)
    return (shape, row["runtime"], row["via"], size_in_words(record.size) if record else "", "", *times, ratio)


def _rival_of(name: str) -> str:
    """Return the output that a rival runs, by its name in the table: `onnxruntime-fp32`."""
    return registry.find(name.rpartition("-")[0]).rival_of or "checkpoint"


def _generated(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what the times of a model that generates text are times of, and how many tokens that makes."""
    ours = [row for row in rows if row["ours"] and "new_tokens" in row]
    if not ours:
        return []
    speeds = ", ".join(f"{row['tokens_per_s']:,.0f}" for row in ours)
    return [f"each call is a whole answer of {ours[0]['new_tokens']} new tokens; ours make {speeds} tokens a second"]


def _ours(summary: Summary) -> tuple[str, str]:
    cosine = summary.report(Section.VALIDATION).get("cosine")
    return (size_in_words(summary.model.size) if summary.model else "", f"{cosine['mean']:.4f}" if cosine else "")


def _ratio_of_ours(summary: Summary, rival: Mapping[str, Any]) -> str:
    """Return how many times faster than this rival our model is at the rival's shape."""
    rows = summary.report(Section.BENCH)["rows"]
    ours = next(
        (row for row in rows if row["ours"] and row["shape"] == rival["shape"] and row["via"] == rival["via"]), None
    )
    ratio = (ours or {}).get("ratio_to", {}).get(rival["runtime"])
    return f"{ratio:.2f} x" if ratio else ""


def _without_one_way(rows: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Leave out the column that says the way, where there is only the one within the process."""
    place = _HEADER.index("via")
    if {row[place] for row in rows[1:]} - {"in-process"}:
        return list(rows)
    return [(*row[:place], *row[place + 1 :]) for row in rows]


def _grouped(rows: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Blank a shape that repeats the row above."""
    shown: list[tuple[str, ...]] = []
    last = ""
    for row in rows:
        shown.append(row if row[0] != last else ("", *row[1:]))
        last = row[0]
    return shown


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    left = rows[0].index("size")
    return [
        "  ".join(
            cell.ljust(width) if column < left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _on_the_cpu(report: Mapping[str, Any]) -> list[str]:
    """Return what is known of a model that no GPU has run yet, and say so."""
    emulated = f", {report['emulated']} emulated" if report.get("emulated") else ""
    return [f"not validated on the device yet; ONNX on the CPU{emulated}:", *_validation(report)] if report else []


def _validation(report: Mapping[str, Any]) -> list[str]:
    drawn = "cases of random tensors" if report.get("random") else "cases"
    lines = [f"{report['cases']} {drawn} against the original model:"]
    for name in ("cosine", "max_abs"):
        measured = report.get(name)
        if measured:
            lines.append(f"  {name} mean {measured['mean']:.4g}, worst {measured['worst']:.4g} ({measured['sample']})")
    if report.get("agreement"):
        lines.append(f"  agreement {report['agreement']['share']:.4g}")
    if report.get("metric"):
        lines.append(f"  {report['metric']['name']} {report['metric']['value']:.4g}")
    return lines
