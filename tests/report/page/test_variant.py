"""What the pictures and tables of the page need of a variant."""

import json

import pytest
from report_pages import prepared

from engine.report import graph
from engine.report import history as past_builds
from engine.report.page import variant
from engine.report.page.values import Value
from engine.report.page.variant import PageVariant


@pytest.fixture(scope="module")
def one():
    [summary], findings, [overview] = prepared(1)
    return PageVariant(
        overview=overview,
        shown=Value(json.loads(json.dumps(summary.to_json())), "show.0"),
        past=Value({"builds": past_builds.as_json(overview.builds)}, "history.0"),
        jobs=graph.of(findings),
        anchor="variant-0",
        plan_jobs=summary.variant.jobs,
        precision="",
    )


def test_rows_of_one_shape_stand_together(one):
    assert [len(rows) for rows in one.bench] == [3, 3, 3]
    assert [variant.place(rows[0]) for rows in one.bench] == [f"batch {n} x sequence 16" for n in (1, 8, 32)]
    assert one.latency["p50_ms"].path == "show.0.bench.0.p50_ms"


def test_throughput_tells_the_built_model_from_a_rival_of_the_same_name(one):
    lines = one.throughput
    assert list(lines) == ["onnxruntime-int8 (ours)", "pytorch-fp32", "onnxruntime-int8"]
    assert [[batch for batch, _ in line] for line in lines.values()] == [[1, 8, 32]] * 3
    assert lines["onnxruntime-int8 (ours)"][0][1].path == "show.0.bench.0.p50_ms"


def test_the_reports_about_precision_are_found_by_their_subject(one):
    assert one.lowered["left"].raw == ["2 Conv"]
    assert not one.fused


def test_history_has_a_point_for_each_other_measurement_and_the_newest_build_first(one):
    assert [build["at"].raw for build in one.builds] == [90_000.5, 1.0]
    [(name, points)] = one.history.items()
    assert (name, [at for at, _ in points]) == ("batch 1 x sequence 16", [1.0, 90_000.5])


def test_a_place_is_the_shape_and_the_way_of_calling():
    for place, row in {
        "the model's own shape": {"shape": {}},
        "batch 1 via triton-grpc": {"shape": {"batch": 1}, "via": "triton-grpc"},
        "batch 1 + 8 tokens": {"shape": {"batch": 1}, "new_tokens": 8},
        "sequence samples in sorted order": {"shape": {"sequence": "samples"}, "samples": {"order": "sorted"}},
    }.items():
        assert variant.place(Value({"via": "in-process", **row}, "p")) == place
