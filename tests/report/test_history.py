"""The history of a variant, as text and as JSON."""

import json

from engine.key import Change
from engine.report import history
from engine.store.history import HeadlineFigures, JobRun, MeasuredLatency, PastBuild

LATENCY = MeasuredLatency(place="batch 1", p50_ms=2.04, interval=(1.9, 2.1))
FIRST = PastBuild(at=1.0, name="x", state="built", jobs={"fuse": "1" * 32}, runs=(JobRun("fuse", "built", 2.0),))
CHANGED = (Change("options.a", "1", "2"), Change("code", "a" * 32, "b" * 32), Change("tools.onnx", None, "1.2"))
SECOND = PastBuild(
    at=2.0, name="x", state="failed", jobs={"fuse": "2" * 32},
    runs=(JobRun("fuse", "built", 2.0, CHANGED), JobRun("validate", "built", 1.0),
          JobRun("bench", "failed", 0.5, error="too slow")),
    figures=HeadlineFigures(size=22_800_000, cosine=0.9912, latencies=(LATENCY, LATENCY)),
)  # fmt: skip


def test_builds_come_newest_first_with_their_figures_and_causes():
    header, second, *causes, first, ran = history.lines([FIRST, SECOND])
    assert header.split() == ["when", "state", "ran", "took", "size", "cosine", "p50", "ms"]
    assert second.split()[2:] == [
        "failed", "3", "jobs", "3.5", "s", "22.8", "MB", "0.9912", "2.04", "/", "2.04",
    ]  # fmt: skip
    assert causes == [
        "  fuse: options.a 1 -> 2; code aaaaaaaaaaaa… -> bbbbbbbbbbbb…; tools.onnx (none) -> 1.2",
        "  bench: failed: too slow",
        "  then: validate",
    ]
    assert first.split()[2:] == ["built", "1", "job", "2.0", "s"]
    assert ran == "  ran: fuse"
    *lines, last = history.lines([FIRST, SECOND], limit=1)
    assert last == "1 earlier build not shown: --limit 2 shows all"
    assert "  ran: fuse" not in lines


def test_machines_get_every_field_with_the_oldest_first():
    first, second = json.loads(json.dumps(history.as_json([FIRST, SECOND])))
    assert (first["at"], first["seconds"], first["figures"]["size"]) == (1.0, 2.0, None)
    assert second["runs"][0]["changes"][2] == {"row": "tools.onnx", "old": None, "new": "1.2"}
    assert second["figures"]["latencies"][0]["interval"] == [1.9, 2.1]
