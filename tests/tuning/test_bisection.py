"""A bisection finds exactly the planted set with few tests; its answer was tested whatever the test is like."""

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.tuning import bisection


class Planted:
    """A test that passes where the planted candidates are kept; it notes what it was asked, beside the empty set."""

    def __init__(self, planted):
        self.planted = frozenset(planted)
        self.asked = {frozenset()}

    def __call__(self, kept):
        self.asked.add(kept)
        return self.planted <= kept


@st.composite
def planted(draw):
    n = draw(st.integers(1, 500))
    chosen = draw(st.sets(st.integers(0, n - 1), min_size=1, max_size=min(n, 6)))
    return [f"layer.{number}" for number in range(n)], {f"layer.{number}" for number in chosen}


@given(planted())
@settings(max_examples=150, deadline=None)
def test_exactly_the_planted_set_is_found_within_the_stated_number_of_tests(case):
    names, needed = case
    planted_set = Planted(needed)
    found = []
    assert bisection.smallest(names, planted_set, found) == needed == set(found)
    assert len(planted_set.asked) <= len(needed) * (math.ceil(math.log2(len(names))) + 2) + 3


@given(st.integers(1, 6))
def test_a_right_suspicion_costs_no_tests_for_the_other_layers(k):
    names = [str(number) for number in range(500)]
    planted_set = Planted(names[:k])
    assert bisection.smallest(names, planted_set, []) == set(names[:k])
    assert len(planted_set.asked) <= 2 * k + k * math.ceil(math.log2(k) + 1) + 6  # nothing of it grows with the 500


def test_a_test_that_passes_with_none_needs_none():
    assert bisection.smallest(["a", "b"], Planted(()), []) == frozenset()
    assert bisection.smallest([], Planted(()), []) == frozenset()


def test_a_test_that_fails_even_with_all_is_asked_no_further():
    planted_set = Planted({"somewhere else"})
    assert bisection.smallest(["a", "b", "c"], planted_set, []) is None
    assert planted_set.asked == {frozenset(), frozenset("abc")}


@given(st.lists(st.booleans(), min_size=256, max_size=256))
def test_an_answer_of_a_test_that_is_not_monotone_was_tested_and_so_was_each_of_its_members(truth):
    names = [str(number) for number in range(8)]
    answers = {}

    def passes(kept):
        answers[kept] = truth[sum(1 << int(name) for name in kept)]
        return answers[kept]

    needed = bisection.smallest(names, passes, [])
    if needed is None:
        assert not answers[frozenset(names)]
    else:
        assert answers[needed]
        assert not any(answers[needed - {name}] for name in needed)
