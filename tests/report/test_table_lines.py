"""The lines beside the rows of a table: the chosen runtime, times on a GPU, lengths of samples."""

import re
from dataclasses import replace
from types import SimpleNamespace

import pytest
import summaries
from summaries import bench, summary

from engine.builder.job import Job
from engine.builder.summary import Summary
from engine.builder.variant import PlannedVariant
from engine.builder.why import Finding
from engine.feasibility.facts import ModelFacts
from engine.kit.bench.report import BenchReport, ModelStart
from engine.kit.bench.sample_report import Batching, SampleFigures, SampleLengths
from engine.kit.bench.stats import Lead
from engine.kit.choice.report import ChoiceReport, Compared
from engine.recipe.schema import ModelSection, Recipe, TargetSection
from engine.report import table_lines
from engine.report.table import table
from engine.runtimes.runner import DeviceTimes
from engine.steps.choose_runtime import ChooseRuntime
from engine.steps.fuse import Fuse
from engine.steps.shape_infer import ShapeInfer

CHOICE = ChoiceReport(
    runtime="b", default="a", cpu="a CPU", threads=1, shapes=({"batch": 1},), order=("a", "b"),
    candidates={"a": Compared(p50_ms=(2.0,)), "b": Compared(p50_ms=(1.0,), lead=Lead(2.0, (1.9, 2.1)))},
)  # fmt: skip
RECORD = SimpleNamespace(
    report=CHOICE.to_json(), report_version=1, name="choose-runtime", size=1, artifact="0", seconds=0.0, peak_bytes=0,
    anonymous_bytes=0, machine={}, key={},
)  # fmt: skip
JOB = Job("m", "choose-runtime", ChooseRuntime(candidates=("a", "b")), {"model_a": "fuse", "model_b": "shape-infer"})
OTHERS = (Job("m", "shape-infer", ShapeInfer(), {}), Job("m", "fuse", Fuse(), {"shaped": "shape-infer"}))
HEADLINE = "auto -> b, 2.00 x faster than a [1.90, 2.10]"


def with_choice(**records):
    target = TargetSection(runtime="auto")
    recipe = Recipe(name="m", model=ModelSection(source="hf:a/b"), target=target)
    variant = PlannedVariant(SimpleNamespace(recipe=recipe, variant="", name="m"), (*OTHERS, JOB))
    return Summary(variant, {name.replace("_", "-"): record for name, record in records.items()})


def test_the_table_begins_with_the_choice_and_the_rejected_candidates_and_json_has_the_report():
    chosen = with_choice(choose_runtime=RECORD)
    assert table(chosen).splitlines()[1:3] == [HEADLINE, "  rejected a: slower than b"]
    assert chosen.to_json()["runtime"] == CHOICE.to_json()
    assert table_lines.choice_lines(with_choice()) == []
    assert "runtime" not in with_choice().to_json()


def test_why_shows_the_choice_of_a_cached_job_only():
    assert table_lines.choice_of_job(Finding(JOB, "cached", record=RECORD))[0] == HEADLINE.replace("auto", "chosen")
    assert table_lines.choice_of_job(Finding(JOB, "new")) == []


TIMES = DeviceTimes(
    enqueue_ms=0.05, gpu_compute_ms=0.5, h2d_pageable_ms=0.03, h2d_pinned_ms=0.02, d2h_pageable_ms=0.01,
    d2h_pinned_ms=0.005, latency_pageable_ms=0.54, latency_pinned_ms=0.525, spin_wait_ms=0.51,
    queries_per_s={"1": 1900.0, "2": 2500.5},
)  # fmt: skip


def on_device(device):
    rows = (summaries.row("tensorrt-fp16", ours=True, device=device),)
    return BenchReport(threads=1, cpu="a CPU", rows=rows)


def test_each_time_of_a_gpu_stands_under_trtexec_s_name():
    title, *rows, rates = table_lines.device_lines(on_device(TIMES))
    assert "CUDA events" in title
    headers, cells = rows[::3], [row.split() for row in rows[1::3]]
    assert all(len(row) <= 80 for row in rows)
    assert headers[0].split()[:4] == ["shape", "runtime", "enqueue", "GPU"]
    assert all(row[:5] == ["1", "x", "16", "tensorrt-fp16", "(ours)"] for row in cells)
    assert [cell for row in cells for cell in row[5:]] == [
        "0.050", "0.500", "0.030", "0.020", "0.010", "0.005", "0.540", "0.525", "0.510",
    ]  # fmt: skip
    assert rates == "  tensorrt-fp16 (ours) at 1 x 16: 1,900.0 calls/s with 1 stream, 2,500.5 calls/s with 2 streams"
    assert list(table_lines.device_lines(on_device(None))) == []
    assert BenchReport.from_json(on_device(TIMES).to_json(), BenchReport.version).rows[0].device == TIMES


SHAPE = {"batch": 8, "sequence": "samples"}


def row(runtime, order, *, ours, texts_per_s):
    gains = {"onnxruntime-int8": (1.6, (1.5, 1.7)), "pytorch-fp32": (1.01, (0.9, 1.1))}
    gain, interval = gains[runtime] if order == "sorted" else (None, None)
    figures = SampleFigures(
        order=order, texts=100, tokens=2800, padding=0.4 if order == "arrival" else 0.05, texts_per_s=texts_per_s,
        tokens_per_s=28 * texts_per_s, gain=gain, gain_interval=interval,
    )  # fmt: skip
    ratio = {"pytorch-fp32": 2.5 if order == "arrival" else 3.5} if ours else {}
    return replace(summaries.row(runtime, ours=ours, noise=0.01), shape=SHAPE, ratio_to=ratio, samples=figures)


def of_samples():
    batchings = (
        Batching(batch=1, order="arrival", padding=0, texts_per_s=250.0),
        Batching(batch=8, order="arrival", padding=0.4, texts_per_s=200.0, gain=0.8, gain_interval=(0.7, 0.9)),
        Batching(batch=8, order="sorted", padding=0.05, texts_per_s=320.0, gain=1.28, gain_interval=(1.2, 1.3)),
    )
    lengths = SampleLengths(
        shape=SHAPE, texts=100, of_texts=1000, tokens=2800, longest=120, limit=512,
        batchings=batchings, buckets=(16, 120), padding_in_buckets=0.2, padding_in_one_bucket=0.766,
    )  # fmt: skip
    rows = tuple(
        row(runtime, order, ours=runtime == "onnxruntime-int8", texts_per_s=texts)
        for order in ("arrival", "sorted")
        for runtime, texts in (("onnxruntime-int8", 200.0), ("pytorch-fp32", 80.0))
    )
    return BenchReport(threads=1, cpu="a CPU", rows=rows, samples=(lengths,))


def test_a_row_for_each_order_with_the_speed_up_over_the_rival_in_the_same_order():
    lines = table(summary(bench=of_samples())).splitlines()
    cells = [line.split() for line in lines if re.search(r"onnxruntime-int8 \(ours\) |pytorch-fp32 ", line)]
    assert [each[:2] for each in cells[::2]] == [["8", "x"], ["8", "x"]]
    assert cells[2][2:4] == ["samples", "sorted"]
    assert [each[-2:] for each in cells[1::2]] == [["2.50", "x"], ["3.50", "x"]]


def test_padding_throughput_and_the_fastest_batches_stand_below_the_table():
    lines = [line.strip() for line in table(summary(bench=of_samples())).splitlines()]
    paddings = "padding 40.0% in arrival order, 5.0% sorted by length"
    assert f"100 samples of 1,000: 2,800 tokens, the longest 120; in batches of 8, {paddings}" in lines
    each = "200.0 texts/s (5,600 tokens/s)"
    assert f"onnxruntime-int8 (ours): {each} in arrival order, {each} sorted: 1.60 x" in lines
    assert [line.endswith("sorted: no difference") for line in lines if line.startswith("pytorch-fp32:")] == [True]
    assert "texts/s by batch size: 1: 250.0; 8: 200.0 in arrival order, 320.0 sorted" in lines
    assert "fastest measured: batches of 8, sorted" in lines


def test_the_proposal_stands_in_the_table_and_in_the_json():
    facts = ModelFacts(kind="transformers", max_sequence=512, axes={"input_ids": ("batch", "sequence")})
    known = summary(precision=facts, bench=of_samples())
    text = table(known)
    assert "for these lengths, the recipe could say:\n    profiles:  # padding 20.0%" in text
    assert "    # no dynamic_batching: in arrival order" in text
    (lengths,) = known.to_json()["sample_lengths"]
    assert lengths["proposal"].startswith("profiles:")
    assert lengths["batchings"][0]["texts_per_s"] == 250.0
    assert "the recipe could say" not in table(summary(bench=of_samples()))  # the axes are not known


def test_a_line_for_each_model_has_pauses_rows_per_second_and_its_start_and_the_table_is_as_wide_as_before():
    rows = tuple(
        replace(
            summaries.row(name, ours=name == "m", shape={"batch": batch, "sequence": 16}, via=via),
            paused_ms=2.0 + batch,
            intervals={"paused_ms": (2.5, 10.5)},
        )
        for batch in (1, 8)
        for name, via in (("m", "in-process"), ("pytorch-fp32", "in-process"), ("m", "triton-grpc"))
    )
    start = ModelStart(runtime="m", ours=True, load_s=0.12, first_ms=3.0, peak_mib=50.0)
    failed = ModelStart(runtime="pytorch-fp32", reason="no first call within 20 s")
    report = BenchReport(threads=2, cpu="a CPU", rows=rows, starts=(start, failed))
    below = "below stand p50 after a pause of 60 ms with its 95 % interval, rows/s, and one start"
    figures = "paused 3.000 ms (2.500 to 10.500) / 10.000 ms (2.500 to 10.500); 667 / 5,333 rows/s"
    assert list(table_lines.model_lines(report)) == [
        f"these calls are hot, in a loop; {below}, at 1 x 16 / 8 x 16; first call at 1 x 16:",
        f"  m (ours): {figures}; load 0.12 s, first call 3.0 ms, peak memory 50 MiB",
        f"  pytorch-fp32: {figures}; start not measured: no first call within 20 s",
        f"  m (ours) triton-grpc: {figures}",
    ]
    shown, before = (table(summary(bench=each)).splitlines() for each in (report, replace(report, starts=())))
    assert [line for line in shown if "p95" in line] == [line for line in before if "p95" in line] != []
    assert list(table_lines.model_lines(bench())) == []


def test_of_many_shapes_the_line_of_a_model_names_four():
    rows = tuple(summaries.row("m", ours=True, paused_ms=float(n), shape={"sequence": n}) for n in range(1, 7))
    line = list(table_lines.model_lines(BenchReport(threads=2, cpu="a CPU", rows=rows)))[1]
    shown = [f"{number}.000 ms ({number}.000 to {number}.000)" for number in range(1, 5)]
    assert line == f"  m (ours): paused {' / '.join(shown)} and 2 more"


def test_where_a_call_fills_its_turn_the_line_says_so_in_place_of_a_pause():
    row = summaries.row("m", ours=True, p50_ms=90.0, shape={"batch": 3})
    start = ModelStart(runtime="m", ours=True, reason="too slow")
    line = list(table_lines.model_lines(BenchReport(threads=2, cpu="a CPU", rows=(row,), starts=(start,))))[1]
    assert line == "  m (ours): paused none: a call fills the turn; 33 rows/s; start not measured: too slow"


@pytest.mark.parametrize(("p50", "rate"), [(20.209, "49"), (20.1, "50")])
def test_rows_per_second_are_rounded_once(p50, rate):
    row = summaries.row("m", ours=True, p50_ms=p50, paused_ms=1.0, shape={"batch": 1})
    line = list(table_lines.model_lines(BenchReport(threads=2, cpu="a CPU", rows=(row,))))[1]
    assert line.endswith(f"; {rate} rows/s")
