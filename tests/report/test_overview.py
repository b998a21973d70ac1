"""A few values of each variant: its state, its figures, and those of the build before."""

import csv
from types import SimpleNamespace

from engine.errors import StepError
from engine.report.overview import VariantOverview, as_csv, as_markdown, as_text, state_of
from engine.store.history import HeadlineFigures, MeasuredLatency, PastBuild


def finding(state="cached", waits_for=None, error=None):
    return SimpleNamespace(state=state, waits_for=waits_for, error=error)


def test_the_state_of_a_variant_follows_from_its_jobs():
    for state, findings in {
        "up to date": [finding(), finding()],
        "not built": [finding("new"), finding("unknown")],
        "2 of 3 jobs to build": [finding(), finding("stale"), finding("unknown")],
        "waits for a T4": [finding(), finding("new", waits_for="a T4")],
        "error: the model is gone": [finding(), finding("unknown", error=StepError("the model is gone"))],
    }.items():
        assert state_of(findings) == state


def figures(p50, place="batch 1", **more):
    latency = MeasuredLatency(place=place, p50_ms=p50, interval=(p50 - 0.1, p50 + 0.1), p95_ms=9.0)
    return HeadlineFigures(size=22_800_000, cosine=0.99125, latencies=(latency,), **more)


def overview(name, figures, *before, state="up to date"):
    builds = [PastBuild(at=1.0, name=name, state="built", jobs={}, figures=each) for each in before]
    return VariantOverview(name, "precision=int8", "int8", "cpu", state, figures, builds)


def test_a_latency_is_compared_with_the_last_build_that_measured_another_one_there():
    elsewhere = figures(9.0, "batch 9")
    assert overview("x", figures(1.0), figures(4.0), figures(2.0), elsewhere, figures(1.0)).change.ratio == 0.5
    for before in ([], [figures(1.0)], [elsewhere]):
        assert overview("x", figures(1.0), *before).change is None, before
        assert overview("x", HeadlineFigures(), *before).change is None, before


FAST = overview("a", figures(1.0), figures(2.0))
NEW = overview("b", HeadlineFigures(), state="not built")


def test_a_row_for_each_variant_without_empty_columns():
    header, first, second, place = as_text([FAST, NEW])
    assert header.split("  ")[0] == "recipe"
    assert "agreement" not in header
    assert first.split() == [
        "a", "up", "to", "date", "22.8", "MB", "0.9912", "1.000", "-50.0%", "(-57.1%", "to", "-42.1%)",
    ]  # fmt: skip
    assert second.split() == ["b", "not", "built"]
    assert place == "p50 at batch 1"


def test_latencies_of_different_shapes_and_metrics_have_columns():
    header, _, row = as_text([FAST, overview("c", figures(3.0, "batch 8"))])
    assert "shape" in header
    assert "batch 8" in row
    header, row, _ = as_text([overview("m", figures(1.0, metrics={"accuracy": 0.91}))])
    assert "accuracy" in header
    assert "0.9100" in row


def test_markdown_is_the_same_table():
    lines = list(as_markdown([FAST, NEW]))
    assert lines[0] == "| recipe | state | size | cosine | p50 ms | against last build |"
    assert lines[1] == "| --- | --- | ---: | ---: | ---: | --- |"
    assert lines[3] == "| b | not built |  |  |  |  |"
    assert lines[-1] == "p50 at batch 1"


def test_csv_has_all_digits_and_a_row_for_each_shape():
    two = figures(1.0)
    both = HeadlineFigures(size=1, cosine=0.991251, latencies=(*two.latencies, *figures(2.0, "batch 8").latencies))
    rows = list(csv.DictReader(as_csv([overview("a", both, figures(2.0)), NEW])))
    assert [(row["recipe"], row["shape"], row["p50_ms"], row["ratio_to_last"]) for row in rows] == [
        ("a", "batch 1", "1.0", "0.5"),
        ("a", "batch 8", "2.0", ""),
        ("b", "", "", ""),
    ]
    assert rows[0]["cosine"] == "0.991251"
    assert rows[0]["variant"] == "precision=int8"
