"""Counts and lists of names in texts."""

from __future__ import annotations

from engine.text import lists


def test_a_noun_is_in_the_plural_except_behind_one():
    assert [lists.counted(count, "thread") for count in (0, 1, 2)] == ["0 threads", "1 thread", "2 threads"]


def test_counts_stand_before_their_names():
    assert lists.counts({"MatMul": 12, "Gather": 1}) == "12 MatMul, 1 Gather"
    assert lists.counts({}) == ""


def test_a_long_list_ends_with_the_number_of_further_names():
    assert lists.first_of(["a", "b"], 2) == "a, b"
    assert lists.first_of(["a", "b", "c", "d"], 2) == "a, b and 2 more"


def test_a_shape_without_axes_is_a_number():
    assert lists.extents(["batch", 128]) == "batch x 128"
    assert lists.extents([]) == "a number"
