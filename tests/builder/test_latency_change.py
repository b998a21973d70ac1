"""Whether one latency differs from another by more than their noise."""

import pytest

from engine.builder import latency_change
from engine.builder.latency_change import LatencyChange, LatencyVerdict
from engine.store.history import HeadlineFigures, MeasuredLatency


def latency(p50, low, high, place="batch 1"):
    return MeasuredLatency(place=place, p50_ms=p50, interval=(low, high))


@pytest.mark.parametrize(
    ("new", "verdict", "words"),
    [
        ((1.0, 0.95, 1.05), LatencyVerdict.FASTER, "-50.0% (-54.8% to -44.7%)"),
        ((4.0, 3.8, 4.2), LatencyVerdict.SLOWER, "+100.0% (+81.0% to +121.1%)"),
        ((1.9, 1.8, 2.0), LatencyVerdict.WITHIN_NOISE, "within noise (-14.3% to +5.3%)"),
    ],
)
def test_only_intervals_without_a_common_value_are_a_difference(new, verdict, words):
    change = LatencyChange(latency(2.0, 1.9, 2.1), latency(*new))
    assert change.verdict is verdict
    assert change.in_words() == words


def test_the_band_holds_the_ratio():
    change = LatencyChange(latency(2.0, 1.9, 2.1), latency(1.0, 0.95, 1.05))
    low, high = change.band
    assert low < change.ratio == 0.5 < high


def test_a_latency_of_zero_gives_no_ratio():
    change = LatencyChange(latency(0.0, 0.0, 0.0), latency(1.0, 1.0, 1.0))
    assert (change.ratio, change.verdict) == (1.0, LatencyVerdict.WITHIN_NOISE)


def test_only_places_that_both_measured_are_compared():
    old = HeadlineFigures(latencies=(latency(2, 2, 2), latency(9, 9, 9, "batch 9")))
    new = HeadlineFigures(latencies=(latency(3, 3, 3, "batch 3"), latency(1, 1, 1)))
    assert [each.new.place for each in latency_change.of_all(old, new)] == ["batch 1"]
