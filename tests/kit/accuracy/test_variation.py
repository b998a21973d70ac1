import numpy as np
import pytest

from engine.kit.accuracy import variation
from engine.kit.inputs.cases import Case


def pairs(original, built):
    """One case for each row."""
    rows = zip(np.asarray(original, "float64"), np.asarray(built, "float64"), strict=True)
    return [
        (Case(f"line {n}", "", "sample", {"x": np.zeros((1, 2))}, {"y": first[None]}), second[None])
        for n, (first, second) in enumerate(rows)
    ]


def of(original, built):
    return variation.of_output("y", pairs(original, built), pooling=None)


NUMBERS = np.random.default_rng(0).standard_normal((12, 3))


def test_the_same_answers_have_all_of_the_variation_and_the_mean_has_nothing_of_it():
    assert of(NUMBERS, NUMBERS).share == 1
    assert of(NUMBERS, np.broadcast_to(NUMBERS.mean(axis=0), NUMBERS.shape)).share == pytest.approx(0)
    assert of(NUMBERS, -NUMBERS).share < 0


def test_a_large_constant_beside_the_variation_changes_nothing():
    bias = np.array([1000, 0, -50])
    assert of(NUMBERS + bias, 0.9 * NUMBERS + bias).share == pytest.approx(of(NUMBERS, 0.9 * NUMBERS).share, abs=0.01)


def test_answers_that_do_not_vary_have_no_variation():
    assert of(np.full((12, 3), 2.5), np.full((12, 3), 2.5)) is None
    assert of(NUMBERS[:1], NUMBERS[:1]) is None


def test_single_numbers_have_a_rank_correlation_and_vectors_have_none():
    single = NUMBERS[:, :1]
    assert of(single, single**3).rank == pytest.approx(1)
    assert of(single, -single).rank == pytest.approx(-1)
    assert of(NUMBERS, NUMBERS).rank is None
    assert of(single[:7], single[:7]).rank is None


def test_equal_numbers_share_the_mean_of_their_ranks():
    first, second = np.random.default_rng(1).integers(0, 6, (2, 30, 1))
    ranks = [np.array([(each < one).sum() + ((each == one).sum() + 1) / 2 for one in each]) for each in (first, second)]
    assert of(first, second).rank == pytest.approx(np.corrcoef(*ranks)[0, 1])
