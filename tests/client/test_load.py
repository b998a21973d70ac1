"""The figures of a load: percentiles and throughput."""

from dataclasses import dataclass, field, replace

import pytest

from engine.client import load
from engine.client.figures import ClientFigures, Errors, Latencies, LoadFigures, ModelTimes, NotMeasured, StreamTimes
from engine.client.generator import LoadOutcome, LoadSettings
from engine.reporting import measured


def test_percentiles_are_in_milliseconds():
    latencies = Latencies.of_seconds([number / 1000 for number in range(1, 102)])
    shown = [getattr(latencies, f"{name}_ms") for name in ("mean", "p50", "p90", "p95", "p99", "max")]
    assert shown == [51, 51, 91, 96, 100, 101]


def measured_load(point, *answers, errors=(), **more):
    """Return the figures of a point: `answers` are the begin, end and tokens of each, `more` settings."""
    outcome = LoadOutcome()
    for begun, ended, tokens in answers:
        outcome.begun.append(begun)
        outcome.ended.append(ended)
        outcome.tokens.append(tokens)
    outcome.errors.update(errors)
    for name in ("firsts", "gaps"):
        getattr(outcome, name).extend(more.pop(name, ()))
    settings = LoadSettings(warm_up=1.0, duration=2.0, timeout=1.0, **more)
    return load._figures(point, settings, [outcome], {})


def test_throughput_counts_what_ended_in_the_window_and_latency_what_began_in_it():
    answers = ((0.5, 0.9, 5), (0.9, 1.2, 5), (1.5, 2.0, 5), (2.9, 3.4, 5))
    figures = measured_load(load.Point(concurrency=1), *answers, count_tokens=True)
    assert (figures.throughput, figures.tokens_per_second) == (1.0, 5.0)
    assert (figures.latency.requests, figures.latency.max_ms) == (2, 500)


def test_a_load_that_nothing_answered_is_told_without_latencies():
    assert measured_load(load.Point(rate=5.0), errors=["gone"] * 3).to_json() == {
        "rate": 5.0, "by": "recipe", "throughput": 0.0, "requests": 3, "latency": {},
        "errors": {"count": 3, "share": 1.0, "messages": {"gone": 3}},
        "client": {"processes": 1, "busy": 0.0, "late_p95_ms": 0.0, "saturated": False}, "server": {},
    }  # fmt: skip


def test_the_times_of_pieces_are_those_of_all_answers():
    pieces = {"firsts": (0.010, 0.030), "gaps": (0.002, 0.004)}
    stream = measured_load(load.Point(concurrency=1), (1.5, 2.0, 3), (1.5, 2.0, 3), streams=True, **pieces).stream
    assert (stream.first_p50_ms, stream.between_p50_ms, stream.pieces) == (20.0, 3.0, 4)
    assert StreamTimes.of_seconds([0.01], []).between_p50_ms is None
    assert StreamTimes.of_seconds([], []) is None


LATENCIES = Latencies(mean_ms=1.0, p50_ms=1.25, p90_ms=2.0, p95_ms=3.0, p99_ms=4.0, max_ms=5.0, requests=7)
CLIENT = ClientFigures(2, busy=0.5, late_p95_ms=0.1, saturated=False)
SERVER = {
    "whole": ModelTimes(7, 0, 7, 7, 5.0, 0.5, 0.0, 3.0, 0.0),
    "first": ModelTimes(7, 0, 7, 7, 2.0, 0.25, 0.5, 1.0, 0.125),
    "second": ModelTimes(7, 0, 7, 7, 2.0, 0.25, 0.5, 2.0, 0.125),
}


@dataclass(frozen=True, kw_only=True)
class WithRetries(LoadFigures):
    """The figures of a load test with one number more."""

    retries: int = field(metadata=measured("retries", digits=0))


def figures(kind=LoadFigures, **other):
    usual = {
        "concurrency": 8, "by": "recipe", "throughput": 3.54, "requests": 8, "latency": LATENCIES,
        "errors": Errors(0, 0.0, {}), "client": CLIENT, "server": SERVER,
    }  # fmt: skip
    return kind(**usual | other)


def shown(point, entry="whole"):
    """Return the row by column."""
    return dict(zip(load.titles(point), load.row(point, entry=entry), strict=True))


def test_every_number_has_a_column_with_its_digits():
    assert shown(figures()) == {
        "clients": "8", "requests/s": "3.5", "mean": "1.000", "p50": "1.250", "p90": "2.000", "p95": "3.000",
        "p99": "4.000", "max": "5.000", "queue": "0.500", "compute": "4.250", "errors": "0",
    }  # fmt: skip


def test_an_open_loop_shows_its_rate_and_generation_its_tokens_and_a_model_of_no_parts_its_own_times():
    row = shown(figures(concurrency=None, rate=2.5, tokens_per_second=12.34))
    assert "clients" not in row
    assert (row["rate/s"], row["tokens/s"]) == ("2.5", "12.3")
    row = shown(figures(server={"first": SERVER["first"]}), "first")
    assert (row["queue"], row["compute"]) == ("0.250", "1.625")


def test_a_number_that_figures_gain_is_a_column_and_a_key_without_another_edit():
    more = figures(WithRetries, retries=3)
    assert shown(more)["retries"] == "3"
    assert more.to_json()["retries"] == 3


@pytest.mark.parametrize(("entry", "server"), [("other", SERVER), ("whole", {})])
def test_what_is_not_known_is_a_dash(entry, server):
    row = shown(figures(latency=NotMeasured(), server=server), entry)
    assert {row[name] for name in ("mean", "p99", "max", "queue", "compute")} == {"-"}


def test_notes_tell_errors_emptiness_and_a_client_at_its_limit():
    assert load.notes(figures()) == []
    assert load.notes(figures(errors=Errors(2, 0.25, {"it is refused": 2}))) == ["2 x it is refused"]
    (empty,) = load.notes(figures(latency=NotMeasured(), client=NotMeasured()))
    assert "longer --duration" in empty
    (full,) = load.notes(figures(client=replace(CLIENT, busy=0.95, saturated=True)))
    assert "95% of a CPU" in full
    (late,) = load.notes(figures(client=replace(CLIENT, late_p95_ms=7.0, saturated=True)))
    assert "7.0 ms late" in late
