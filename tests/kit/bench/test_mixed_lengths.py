"""Mixed lengths: batches, padding and buckets, against brute force."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.kit.bench import mixed_lengths
from engine.kit.bench.mixed_lengths import SampleOrder
from engine.kit.inputs.token_rows import RowLimits

LENGTHS = st.lists(st.integers(1, 120), min_size=1, max_size=40)


def computed(lengths, size, order):
    groups = mixed_lengths.batches(lengths, size, order)
    return sum(len(group) * max(lengths[index] for index in group) for group in groups)


@given(LENGTHS, st.integers(1, 9), st.sampled_from(SampleOrder))
def test_every_row_is_in_one_batch_and_only_the_last_batch_is_smaller(lengths, size, order):
    groups = mixed_lengths.batches(lengths, size, order)
    assert sorted(index for group in groups for index in group) == list(range(len(lengths)))
    assert all(len(group) == size for group in groups[:-1])
    assert 1 <= len(groups[-1]) <= size


@given(LENGTHS, st.integers(1, 9))
def test_sorted_batches_ascend_and_arrival_keeps_the_order(lengths, size):
    arrival = mixed_lengths.batches(lengths, size, SampleOrder.ARRIVAL)
    by_length = mixed_lengths.batches(lengths, size, SampleOrder.SORTED)
    assert [index for group in arrival for index in group] == list(range(len(lengths)))
    ordered = [lengths[index] for group in by_length for index in group]
    assert ordered == sorted(lengths)


@given(st.lists(st.integers(1, 120), min_size=1, max_size=8).map(lambda each: each * 4))
def test_sorted_full_batches_never_need_more_positions(lengths):
    assert computed(lengths, 4, SampleOrder.SORTED) <= computed(lengths, 4, SampleOrder.ARRIVAL)
    assert computed(lengths, 1, SampleOrder.SORTED) == computed(lengths, 1, SampleOrder.ARRIVAL) == sum(lengths)


def test_a_batch_of_a_model_without_limits_is_padded_to_its_longest_row():
    assert mixed_lengths.padded(3, 17, ()) == (3, 17)


@pytest.mark.parametrize(
    ("rows", "longest", "shape"),
    [(1, 9, (1, 16)), (1, 17, (1, 17)), (3, 9, (8, 32)), (9, 9, None), (1, 65, None)],
)
def test_a_batch_is_padded_to_the_smallest_profile_that_holds_it(rows, longest, shape):
    allowed = (RowLimits((8, 8), (32, 32)), RowLimits((1, 1), (16, 64)))
    assert mixed_lengths.padded(rows, longest, allowed) == shape


@given(LENGTHS, st.integers(1, 4))
def test_buckets_need_as_few_positions_as_the_best_of_all_choices(lengths, most):
    ends = sorted({-(-length // 8) * 8 for length in lengths})
    best = {
        count: min(mixed_lengths.positions(lengths, (*inner, ends[-1])) for inner in combinations(ends[:-1], count - 1))
        for count in range(1, min(most, len(ends)) + 1)
    }
    buckets = mixed_lengths.buckets(lengths, most=most)
    assert len(buckets) <= most
    assert list(buckets) == sorted(set(buckets))
    assert mixed_lengths.positions(lengths, buckets) == best[len(buckets)]
    if len(buckets) > 1:  # the last bucket is worth its place
        assert best[len(buckets)] <= 0.95 * best[len(buckets) - 1]


@given(LENGTHS, st.integers(0, 20))
def test_no_bucket_is_longer_than_the_model_takes(lengths, more):
    longest = max(lengths) + more
    buckets = mixed_lengths.buckets(lengths, longest=longest)
    assert max(lengths) <= buckets[-1] <= longest
    assert all(bucket % 8 == 0 or bucket == longest for bucket in buckets)


def test_padding_is_the_share_of_positions_without_a_token():
    assert mixed_lengths.padding(30, 40) == 0.25
    assert mixed_lengths.padding(0, 0) == 0


@given(st.integers(1, 50), st.integers(1, 50))
def test_evenly_spaced_items_are_distinct_and_begin_with_the_first(count, most):
    chosen = mixed_lengths.evenly(count, most)
    assert len(set(chosen)) == min(count, most)
    assert chosen == sorted(chosen)
    assert chosen[0] == 0
    assert chosen[-1] < count
