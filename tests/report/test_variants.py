"""The table with a row for each variant."""

import csv

from engine.report import variants
from engine.report.overview import VariantOverview
from engine.store.history import HeadlineFigures, MeasuredLatency, PastBuild


def figures(p50, place="batch 1", **more):
    latency = MeasuredLatency(place=place, p50_ms=p50, interval=(p50 - 0.1, p50 + 0.1), p95_ms=9.0)
    return HeadlineFigures(size=22_800_000, cosine=0.99125, latencies=(latency,), **more)


def overview(name, figures, *before, state="up to date"):
    builds = [PastBuild(at=1.0, name=name, state="built", jobs={}, figures=each) for each in before]
    return VariantOverview(name, "precision=int8", "int8", "cpu", state, figures, builds)


FAST = overview("a", figures(1.0), figures(2.0))
NEW = overview("b", HeadlineFigures(), state="not built")


def test_a_row_for_each_variant_without_empty_columns():
    header, first, second, place = variants.as_text([FAST, NEW])
    assert header.split("  ")[0] == "recipe"
    assert "agreement" not in header
    assert first.split() == [
        "a", "up", "to", "date", "22.8", "MB", "0.9912", "1.000", "-50.0%", "(-57.1%", "to", "-42.1%)",
    ]  # fmt: skip
    assert second.split() == ["b", "not", "built"]
    assert place == "p50 at batch 1"


def test_latencies_of_different_shapes_name_their_shapes():
    lines = list(variants.as_text([FAST, overview("c", figures(3.0, "batch 8"))]))
    assert "shape" in lines[0]
    assert "batch 8" in lines[2]
    assert len(lines) == 3


def test_metrics_have_columns_of_their_own():
    header, row, _ = variants.as_text([overview("m", figures(1.0, metrics={"accuracy": 0.91}))])
    assert "accuracy" in header
    assert "0.9100" in row


def test_markdown_is_the_same_table():
    lines = list(variants.as_markdown([FAST, NEW]))
    assert lines[0] == "| recipe | state | size | cosine | p50 ms | against last build |"
    assert lines[1] == "| --- | --- | ---: | ---: | ---: | --- |"
    assert lines[3] == "| b | not built |  |  |  |  |"
    assert lines[-1] == "p50 at batch 1."


def test_csv_has_all_digits_and_a_row_for_each_shape():
    two = figures(1.0)
    both = HeadlineFigures(size=1, cosine=0.991251, latencies=(*two.latencies, *figures(2.0, "batch 8").latencies))
    rows = list(csv.DictReader(variants.as_csv([overview("a", both, figures(2.0)), NEW])))
    assert [(row["recipe"], row["shape"], row["p50_ms"], row["ratio_to_last"]) for row in rows] == [
        ("a", "batch 1", "1.0", "0.5"),
        ("a", "batch 8", "2.0", ""),
        ("b", "", "", ""),
    ]
    assert rows[0]["cosine"] == "0.991251"
    assert rows[0]["variant"] == "precision=int8"
