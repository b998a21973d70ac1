"""Confidence intervals of latencies, held against simulated measurements whose true values are known."""

import random

import numpy as np
import pytest

from engine.kit.bench import confidence, stats


def busy_rounds(seed, *, rounds=10, calls=20, drift=0.1):
    """Latencies around 10 ms; each round has a disturbance of its own, as on a busy machine."""
    generator = random.Random(seed)
    shifts = [generator.gauss(0, drift) for _ in range(rounds)]
    return [[10 * (1 + shift + generator.gauss(0, 0.02)) for _ in range(calls)] for shift in shifts]


def test_the_interval_of_the_median_covers_the_true_median_in_most_measurements():
    intervals = [confidence.intervals(busy_rounds(seed))["p50_ms"] for seed in range(100)]
    covered = sum(low <= 10 <= high for low, high in intervals)
    assert 85 <= covered <= 100
    assert max(high - low for low, high in intervals) < 4


def test_calls_of_one_round_are_no_independent_evidence():
    """Ten times as many calls in the same disturbed rounds do not make the interval much narrower."""
    few, many = (confidence.intervals(busy_rounds(3, calls=calls))["p50_ms"] for calls in (10, 100))
    assert (many[1] - many[0]) > 0.5 * (few[1] - few[0])


def test_more_rounds_make_the_interval_narrower():
    few, many = (confidence.intervals(busy_rounds(4, rounds=rounds))["mean_ms"] for rounds in (10, 80))
    assert (many[1] - many[0]) < 0.6 * (few[1] - few[0])


def test_equal_latencies_have_equal_intervals_around_their_statistics():
    rounds = busy_rounds(5)
    every = [value for values in rounds for value in values]
    intervals = confidence.intervals(rounds)
    assert intervals == confidence.intervals(rounds)
    for name, share in confidence.SHARES.items():
        low, high = intervals[name]
        assert low <= stats.percentile(every, share) <= high
    assert intervals["mean_ms"][0] <= sum(every) / len(every) <= intervals["mean_ms"][1]


def test_the_percentiles_of_a_draw_are_those_of_its_latencies():
    rounds = [[3.0, 1.0, 2.0], [9.0, 7.0], [4.0, 4.0, 5.0, 6.0]]
    counts = np.array([[1, 1, 1], [3, 0, 0], [0, 2, 1]])
    percentiles = confidence._percentiles(rounds, counts)
    for row, numbers in enumerate(counts):
        drawn = [value for values, number in zip(rounds, numbers, strict=True) for value in values * number]
        for name, share in confidence.SHARES.items():
            assert percentiles[name][row] == pytest.approx(stats.percentile(drawn, share))


@pytest.mark.parametrize("rounds", [[[5.0]], [[1.0, 9.0]], [[1.0, 2.0], [3.0, 9.0]]])
def test_few_rounds_give_the_widest_interval(rounds):
    every = [value for values in rounds for value in values]
    assert set(confidence.intervals(rounds).values()) == {(min(every), max(every))}
