"""The order of turns is balanced: nobody begins more often, and nobody always follows the same contender."""

from collections import Counter
from itertools import pairwise

import pytest

from engine.kit.bench import turns


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 8, 13])
def test_each_contender_begins_and_follows_each_other_one_equally_often(count):
    rounds = [turns.order(number, count) for number in range(count * (1 + count % 2))]
    assert all(sorted(each) == list(range(count)) for each in rounds)
    begins = Counter(each[0] for each in rounds)
    follows = Counter(pair for each in rounds for pair in pairwise(each))
    assert len(set(begins.values())) == 1
    assert len(begins) == count
    assert len(follows) == count * (count - 1)
    assert len(set(follows.values())) <= 1


def test_ten_rounds_of_many_contenders_show_each_at_least_nine_others_before_it():
    rounds = [turns.order(number, 13) for number in range(10)]
    before = [{each[each.index(index) - 1] for each in rounds if each[0] != index} for index in range(13)]
    assert min(map(len, before)) >= 9


def test_a_turn_begins_after_a_rest_where_another_contender_ran_before(monkeypatch):
    rests = []
    monkeypatch.setattr(turns.time, "sleep", rests.append)
    turns.rest(None, 0)
    turns.rest(1, 1)
    assert rests == []
    turns.rest(0, 1)
    assert rests[0] > 0.036
