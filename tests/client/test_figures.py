"""The JSON of figures: programs of others read its keys."""

import json

import pytest

from engine.client import figures
from engine.client.figures import (
    ClientFigures,
    Errors,
    Latencies,
    LoadFigures,
    ModelTimes,
    NotMeasured,
    QueryFigures,
    Statistics,
)
from engine.client.model_metadata import ModelMetadata

TIMES = ModelTimes(6, 1, 12, 3, 5.0, 1.0, 0.5, 2.0, 0.25)
LATENCIES = Latencies(mean_ms=1.0, p50_ms=1.25, p90_ms=2.0, p95_ms=3.0, p99_ms=4.0, max_ms=5.0, requests=7)
THEIRS = Latencies(mean_ms=1.0, p50_ms=1.25, p90_ms=2.0, p95_ms=3.0, p99_ms=4.0, requests=7)
CLOSED = LoadFigures(
    concurrency=8, by="recipe", throughput=3.5, requests=8, latency=LATENCIES, errors=Errors(1, 0.125, {"no": 1}),
    client=ClientFigures(2, busy=0.0, late_p95_ms=0.1, saturated=False), tokens_per_second=7.0, server={"m": TIMES},
)  # fmt: skip
OPEN = LoadFigures(
    rate=2.5, by="perf_analyzer 2.51", throughput=0.0, requests=0, latency=NotMeasured(), errors=Errors(0, 0.0, {}),
    client=NotMeasured(), server={},
)  # fmt: skip

LATENCIES_JSON = {
    "mean_ms": 1.0, "p50_ms": 1.25, "p90_ms": 2.0, "p95_ms": 3.0, "p99_ms": 4.0, "max_ms": 5.0, "requests": 7,
}  # fmt: skip
TIMES_JSON = {
    "requests": 6, "failed": 1, "rows": 12, "executions": 3, "total_ms": 5.0, "queue_ms": 1.0,
    "compute_input_ms": 0.5, "compute_infer_ms": 2.0, "compute_output_ms": 0.25,
}  # fmt: skip


def written(figures):
    """Return the line of `--json`. The order of the keys counts."""
    return json.dumps(figures.to_json())


def test_a_load_as_json_has_an_empty_object_for_what_was_not_measured_and_no_key_for_what_was_not_asked():
    assert written(CLOSED) == json.dumps({
        "concurrency": 8, "by": "recipe", "throughput": 3.5, "requests": 8, "latency": LATENCIES_JSON,
        "errors": {"count": 1, "share": 0.125, "messages": {"no": 1}},
        "client": {"processes": 2, "busy": 0.0, "late_p95_ms": 0.1, "saturated": False},
        "tokens_per_second": 7.0, "server": {"m": TIMES_JSON},
    })  # fmt: skip
    assert written(OPEN) == json.dumps({
        "rate": 2.5, "by": "perf_analyzer 2.51", "throughput": 0.0, "requests": 0, "latency": {},
        "errors": {"count": 0, "share": 0.0, "messages": {}}, "client": {}, "server": {},
    })  # fmt: skip


def test_a_query_as_json():
    assert written(QueryFigures(1.5)) == json.dumps({"first_ms": 1.5})
    statistics = Statistics({"m": TIMES}, client_ms=6.0, network_and_client_ms=1.0)
    statistics_json = {"models": {"m": TIMES_JSON}, "client_ms": 6.0, "network_and_client_ms": 1.0}
    assert written(QueryFigures(1.5, LATENCIES, statistics)) == json.dumps(
        {"first_ms": 1.5, "latency": LATENCIES_JSON, "statistics": statistics_json}
    )
    latency = QueryFigures(1.5, THEIRS).to_json()["latency"]
    assert latency == {name: value for name, value in LATENCIES_JSON.items() if name != "max_ms"}


@pytest.mark.parametrize("figures", [CLOSED, OPEN, QueryFigures(1.5), QueryFigures(1.5, THEIRS)])
def test_figures_read_back_as_what_they_were(figures):
    assert type(figures).from_json(json.loads(written(figures))) == figures


def test_counters_are_told_per_request_to_the_entry():
    def stats(name, count, queue):
        spent = {"success": {"count": count, "ns": 10 * queue}, "queue": {"count": count, "ns": queue}}
        counts = {"inference_count": count, "execution_count": count}
        return {"name": name, "version": "1", **counts, "inference_stats": spent}

    before, after = (
        figures.read([stats("part", number, number * 1e6), stats("e", 3 * number, number * 1e6)]) for number in (2, 6)
    )
    times = figures.between(ModelMetadata("e", (), (), composing_models=("part",)), before, after)
    assert list(times) == ["e", "part"]
    assert times["e"].requests == 12
    assert times["part"].queue_ms == pytest.approx(4 / 12, abs=1e-4)
    restarted = figures.between(ModelMetadata("e", (), ()), after, before)
    assert restarted["e"].requests == 6
