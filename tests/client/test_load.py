"""The figures of a load: percentiles and throughput."""

from engine.client import load
from engine.client.address import Address
from engine.client.figures import Latencies, StreamTimes
from engine.client.generator import Load, LoadOutcome


def test_percentiles_are_in_milliseconds():
    latencies = Latencies.of_seconds([number / 1000 for number in range(1, 102)])
    assert [getattr(latencies, f"{name}_ms") for name in ("mean", "p50", "p90", "p95", "p99", "max")] == [
        51,
        51,
        91,
        96,
        100,
        101,
    ]


def test_throughput_counts_what_ended_in_the_window_and_latency_what_began_in_it():
    outcome = LoadOutcome()
    for begun, ended in ((0.5, 0.9), (0.9, 1.2), (1.5, 2.0), (2.9, 3.4)):
        outcome.begun.append(begun)
        outcome.ended.append(ended)
        outcome.tokens.append(5)
    planned = Load(Address("h", 1, "http"), (), 0.0, warm_up=1.0, duration=2.0, timeout=1.0, count_tokens=True)
    figures = load._figures(load.Point(concurrency=1), planned, [outcome], {})
    assert figures.throughput == 1.0
    assert figures.tokens_per_second == 5.0
    assert figures.latency.requests == 2
    assert figures.latency.max_ms == 500


def test_a_load_that_nothing_answered_is_told_without_latencies():
    planned = Load(Address("h", 1, "http"), (), 0.0, warm_up=1.0, duration=2.0, timeout=1.0)
    outcome = LoadOutcome()
    outcome.errors["gone"] += 3
    figures = load._figures(load.Point(rate=5.0), planned, [outcome], {}).to_json()
    assert figures == {
        "rate": 5.0, "by": "recipe", "throughput": 0.0, "requests": 3, "latency": {},
        "errors": {"count": 3, "share": 1.0, "messages": {"gone": 3}},
        "client": {"processes": 1, "busy": 0.0, "late_p95_ms": 0.0, "saturated": False}, "server": {},
    }  # fmt: skip


def test_the_times_of_pieces_are_those_of_all_answers():
    outcome = LoadOutcome()
    for first, gaps in ((0.010, (0.002, 0.004)), (0.030, ())):
        outcome.begun.append(1.5)
        outcome.ended.append(2.0)
        outcome.tokens.append(3)
        outcome.firsts.append(first)
        outcome.gaps.extend(gaps)
    planned = Load(Address("h", 1, "http"), (), 0.0, warm_up=1.0, duration=2.0, timeout=1.0, streams=True)
    stream = load._figures(load.Point(concurrency=1), planned, [outcome], {}).stream
    assert (stream.first_p50_ms, stream.between_p50_ms, stream.pieces) == (20.0, 3.0, 4)


def test_answers_of_one_piece_have_no_time_between_pieces():
    assert StreamTimes.of_seconds([0.01], []).between_p50_ms is None
    assert StreamTimes.of_seconds([], []) is None
