import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from engine.kit.bench import stats
from engine.kit.bench.report import BenchRow


def summary(rounds):
    return BenchRow.of_rounds(rounds, shape={}, via="in-process", runtime="m", ours=True, ratios={})


latencies = some.lists(some.floats(0.001, 1e4), min_size=1, max_size=60)


@given(latencies, some.floats(0, 1))
def test_a_percentile_is_what_numpy_says(values, share):
    assert stats.percentile(values, share) == pytest.approx(float(np.percentile(values, share * 100)), rel=1e-9)


def test_there_is_no_percentile_of_nothing():
    with pytest.raises(ValueError, match="at least one value"):
        stats.percentile([], 0.5)


def test_one_slow_call_in_a_hundred_shows_in_p99_and_not_in_p50():
    row = summary([[1.0] * 50, [1.0] * 48 + [9.0, 9.0]])
    assert row.p50_ms == 1.0
    assert row.p95_ms == 1.0
    assert row.p99_ms == pytest.approx(9.0, abs=0.1)
    assert row.mean_ms == pytest.approx(1.16)
    assert row.runs == 100


def test_noise_is_half_the_confidence_interval_of_the_median_and_not_what_one_disturbed_round_does():
    assert summary([[2.0, 2.0]] * 9 + [[90.0, 90.0]]).noise == 0
    row = summary([[1.0], [2.0], [3.0], [4.0], [5.0]])
    low, high = row.intervals["p50_ms"]
    assert 1 <= low < 3 < high <= 5
    assert row.noise == pytest.approx((high - low) / 2 / 3, abs=1e-4)


def test_a_ratio_compares_within_rounds_so_that_a_slow_spell_of_the_machine_cancels_out():
    ours = [[1.0, 1.1, 0.9], [10.0, 11.0, 9.0], [1.0, 1.0, 1.0]]
    rival = [[3.0, 3.0, 3.0], [30.0, 30.0, 30.0], [3.0, 3.1, 2.9]]
    assert stats.ratios(rival, ours) == [3.0, 3.0, 3.0]


def busy_rounds(seed, *, rounds=10, calls=20, drift=0.1):
    """Latencies around 10 ms; each round has a disturbance of its own, as on a busy machine."""
    generator = random.Random(seed)
    shifts = [generator.gauss(0, drift) for _ in range(rounds)]
    return [[10 * (1 + shift + generator.gauss(0, 0.02)) for _ in range(calls)] for shift in shifts]


def test_the_interval_of_the_median_covers_the_true_median_in_most_measurements():
    intervals = [stats.intervals(busy_rounds(seed))["p50_ms"] for seed in range(100)]
    covered = sum(low <= 10 <= high for low, high in intervals)
    assert 85 <= covered <= 100
    assert max(high - low for low, high in intervals) < 4


def test_calls_of_one_round_are_no_independent_evidence():
    """Ten times as many calls in the same disturbed rounds do not make the interval much narrower."""
    few, many = (stats.intervals(busy_rounds(3, calls=calls))["p50_ms"] for calls in (10, 100))
    assert (many[1] - many[0]) > 0.5 * (few[1] - few[0])


def test_more_rounds_make_the_interval_narrower():
    few, many = (stats.intervals(busy_rounds(4, rounds=rounds))["mean_ms"] for rounds in (10, 80))
    assert (many[1] - many[0]) < 0.6 * (few[1] - few[0])


def test_equal_latencies_have_equal_intervals_around_their_statistics():
    rounds = busy_rounds(5)
    every = [value for values in rounds for value in values]
    intervals = stats.intervals(rounds)
    assert intervals == stats.intervals(rounds)
    for name, share in stats.SHARES.items():
        low, high = intervals[name]
        assert low <= stats.percentile(every, share) <= high
    assert intervals["mean_ms"][0] <= sum(every) / len(every) <= intervals["mean_ms"][1]


def test_the_percentiles_of_a_draw_are_those_of_its_latencies():
    rounds = [[3.0, 1.0, 2.0], [9.0, 7.0], [4.0, 4.0, 5.0, 6.0]]
    counts = np.array([[1, 1, 1], [3, 0, 0], [0, 2, 1]])
    percentiles = stats._percentiles(rounds, counts)
    for row, numbers in enumerate(counts):
        drawn = [value for values, number in zip(rounds, numbers, strict=True) for value in values * number]
        for name, share in stats.SHARES.items():
            assert percentiles[name][row] == pytest.approx(stats.percentile(drawn, share))


@pytest.mark.parametrize("rounds", [[[5.0]], [[1.0, 9.0]], [[1.0, 2.0], [3.0, 9.0]]])
def test_few_rounds_give_the_widest_interval(rounds):
    every = [value for values in rounds for value in values]
    assert set(stats.intervals(rounds).values()) == {(min(every), max(every))}
