"""What a load comes to: percentiles and throughput."""

from engine.client import load
from engine.client.address import Address
from engine.client.generator import Done, Load
from engine.client.repeating import latencies


def test_percentiles_are_in_milliseconds():
    found = latencies([number / 1000 for number in range(1, 102)])
    assert [getattr(found, f"{name}_ms") for name in ("mean", "p50", "p90", "p95", "p99", "max")] == [
        51,
        51,
        91,
        96,
        100,
        101,
    ]


def test_throughput_counts_what_ended_in_the_window_and_latency_what_began_in_it():
    done = Done()
    for begun, ended in ((0.5, 0.9), (0.9, 1.2), (1.5, 2.0), (2.9, 3.4)):
        done.begun.append(begun)
        done.ended.append(ended)
        done.tokens.append(5)
    wish = Load(Address("h", 1, "http"), (), 0.0, warm_up=1.0, duration=2.0, timeout=1.0, count_tokens=True)
    found = load._figures(load.Point(concurrency=1), wish, [done], {})
    assert found.throughput == 1.0
    assert found.tokens_per_second == 5.0
    assert found.latency.requests == 2
    assert found.latency.max_ms == 500


def test_a_load_that_nothing_answered_is_told_without_latencies():
    wish = Load(Address("h", 1, "http"), (), 0.0, warm_up=1.0, duration=2.0, timeout=1.0)
    done = Done()
    done.errors["gone"] += 3
    found = load._figures(load.Point(rate=5.0), wish, [done], {}).to_json()
    assert found == {
        "rate": 5.0, "by": "recipe", "throughput": 0.0, "requests": 3, "latency": {},
        "errors": {"count": 3, "share": 1.0, "messages": {"gone": 3}},
        "client": {"processes": 1, "busy": 0.0, "late_p95_ms": 0.0, "saturated": False}, "server": {},
    }  # fmt: skip
