"""Counts and lists of names in texts."""

from engine.text import lists


def test_counts_shapes_and_long_lists_are_written_for_people():
    assert [lists.counted(count, "thread") for count in (0, 1, 2)] == ["0 threads", "1 thread", "2 threads"]
    assert [lists.counts(each) for each in ({"MatMul": 12, "Gather": 1}, {})] == ["12 MatMul, 1 Gather", ""]
    assert [lists.first_of(each, 2) for each in (["a", "b"], ["a", "b", "c", "d"])] == ["a, b", "a, b and 2 more"]
    assert [lists.extents(each) for each in (["batch", 128], [])] == ["batch x 128", "a number"]
