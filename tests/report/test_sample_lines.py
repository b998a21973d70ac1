"""What the table says about the lengths of samples."""

import re

from report.test_table import summary

from engine.feasibility.facts import ModelFacts
from engine.kit.bench.report import BenchReport, BenchRow
from engine.kit.bench.sample_report import Batching, SampleFigures, SampleLengths
from engine.report.table import table

SHAPE = {"batch": 8, "sequence": "samples"}


def row(runtime, order, *, ours, texts_per_s):
    gains = {"onnxruntime-int8": (1.6, (1.5, 1.7)), "pytorch-fp32": (1.01, (0.9, 1.1))}
    gain, interval = gains[runtime] if order == "sorted" else (None, None)
    figures = SampleFigures(
        order=order, texts=100, tokens=2800, padding=0.4 if order == "arrival" else 0.05, texts_per_s=texts_per_s,
        tokens_per_s=28 * texts_per_s, gain=gain, gain_interval=interval,
    )  # fmt: skip
    ratio = {"pytorch-fp32": 2.5 if order == "arrival" else 3.5} if ours else {}
    return BenchRow(
        shape=SHAPE, via="in-process", runtime=runtime, ours=ours, mean_ms=2.0, p50_ms=1.5, p95_ms=3.0, p99_ms=4.0,
        runs=100, noise=0.01, ratio_to=ratio, samples=figures,
    )  # fmt: skip


def report():
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


def facts():
    return ModelFacts(kind="transformers", max_sequence=512, axes={"input_ids": ("batch", "sequence")})


def test_a_row_for_each_order_with_the_speed_up_over_the_rival_in_the_same_order():
    lines = table(summary(bench=report())).splitlines()
    cells = [line.split() for line in lines if re.search(r"onnxruntime-int8 \(ours\) |pytorch-fp32 ", line)]
    assert [each[:2] for each in cells[::2]] == [["8", "x"], ["8", "x"]]
    assert cells[2][2:4] == ["samples", "sorted"]
    assert [each[-2:] for each in cells[1::2]] == [["2.50", "x"], ["3.50", "x"]]


def test_padding_throughput_and_the_fastest_batches_stand_below_the_table():
    lines = [line.strip() for line in table(summary(bench=report())).splitlines()]
    paddings = "padding 40.0% in arrival order, 5.0% sorted by length"
    assert f"100 samples of 1,000: 2,800 tokens, the longest 120; in batches of 8, {paddings}" in lines
    each = "200.0 texts/s (5,600 tokens/s)"
    assert f"onnxruntime-int8 (ours): {each} in arrival order, {each} sorted: 1.60 x" in lines
    assert [line.endswith("sorted: no difference") for line in lines if line.startswith("pytorch-fp32:")] == [True]
    assert "texts/s by batch size: 1: 250.0; 8: 200.0 in arrival order, 320.0 sorted" in lines
    assert "fastest measured: batches of 8, sorted" in lines


def test_the_proposal_stands_in_the_table_and_in_the_json():
    known = summary(precision=facts(), bench=report())
    text = table(known)
    assert "for these lengths, the recipe could say:\n    profiles:  # padding 20.0%" in text
    assert "    # no dynamic_batching: in arrival order" in text
    (lengths,) = known.to_json()["sample_lengths"]
    assert lengths["proposal"].startswith("profiles:")
    assert lengths["batchings"][0]["texts_per_s"] == 250.0
    assert "the recipe could say" not in table(summary(bench=report()))  # the axes are not known
