"""A bisection finds exactly the planted set with few tests, and says honestly what a test that is not monotone gave."""

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.tuning import bisection


class Planted:
    """A test that passes where the planted candidates are kept; it refuses to be asked twice."""

    def __init__(self, planted):
        self.planted = frozenset(planted)
        self.asked = []

    def __call__(self, kept):
        assert kept not in self.asked
        self.asked.append(kept)
        return self.planted <= kept


@st.composite
def planted(draw):
    n = draw(st.integers(1, 500))
    chosen = draw(st.sets(st.integers(0, n - 1), max_size=min(n, 6)))
    return [f"layer.{number}" for number in range(n)], {f"layer.{number}" for number in chosen}


@given(planted())
@settings(max_examples=150, deadline=None)
def test_exactly_the_planted_set_is_found_within_the_stated_number_of_tests(case):
    names, needed = case
    planted_set = Planted(needed)
    found = bisection.smallest(names, planted_set)
    assert found.needed is not None
    assert set(found.needed) == needed
    assert len(found.needed) == len(needed)
    assert found.contradiction is None
    assert found.evaluations == len(planted_set.asked)
    assert found.evaluations <= len(needed) * (math.ceil(math.log2(len(names))) + 2) + 3


@given(st.integers(1, 6))
def test_a_right_suspicion_costs_no_tests_for_the_other_layers(k):
    names = [str(number) for number in range(500)]
    found = bisection.smallest(names, Planted(names[:k]))
    assert set(found.needed) == set(names[:k])
    assert found.evaluations <= 2 * k + k * math.ceil(math.log2(k) + 1) + 6  # nothing of it grows with the 500


def test_a_test_that_passes_at_once_is_asked_once():
    planted_set = Planted(())
    assert bisection.smallest(["a", "b"], planted_set) == bisection.Bisected((), 1)


def test_a_test_that_fails_even_with_all_is_asked_twice():
    planted_set = Planted({"somewhere else"})
    assert bisection.smallest(["a", "b", "c"], planted_set) == bisection.Bisected(None, 2)


def test_nothing_to_keep_at_all_is_no_answer():
    assert bisection.smallest([], Planted({"somewhere else"})) == bisection.Bisected(None, 1)


@given(st.lists(st.booleans(), min_size=256, max_size=256))
def test_an_answer_of_a_test_that_is_not_monotone_was_tested_and_so_was_each_of_its_members(truth):
    names = [str(number) for number in range(8)]
    answers = {}

    def passes(kept):
        answers[kept] = truth[sum(1 << int(name) for name in kept)]
        return answers[kept]

    found = bisection.smallest(names, passes)
    if found.needed is None:
        assert not answers[frozenset()]
        assert not answers[frozenset(names)]
        return
    assert answers[frozenset(found.needed)]
    assert not any(answers[frozenset(found.needed) - {name}] for name in found.needed)
    contradicts = any(less < more and answers[less] and not answers[more] for less in answers for more in answers)
    assert (found.contradiction is not None) == contradicts
