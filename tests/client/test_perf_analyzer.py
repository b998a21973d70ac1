"""Our figures, made of the files that perf_analyzer writes."""

from engine.client import perf_analyzer
from engine.client.figures import NotMeasured
from engine.client.load import Point

TABLE = """\
Concurrency,Inferences/Second,Avg latency,p50 latency,p90 latency,p95 latency,p99 latency
2,80.5,1500,1400,2100,2200.5,3000
"""


def test_its_figures_are_requests_and_milliseconds(tmp_path):
    (tmp_path / "report.csv").write_text(TABLE)
    output = "  Client:\n    Request count: 120\n"
    figures = perf_analyzer._figures(
        Point(concurrency=2), "perf_analyzer 2.51", 2, tmp_path / "report.csv", output, server={}
    )
    assert figures.client == NotMeasured()
    assert figures.to_json() == {
        "concurrency": 2, "by": "perf_analyzer 2.51", "throughput": 40.25, "requests": 120,
        "latency": {"mean_ms": 1.5, "p50_ms": 1.4, "p90_ms": 2.1, "p95_ms": 2.2005, "p99_ms": 3.0, "requests": 120},
        "errors": {"count": 0, "share": 0.0, "messages": {}}, "client": {}, "server": {},
    }  # fmt: skip
