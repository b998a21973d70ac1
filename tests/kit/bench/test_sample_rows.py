"""Samples as rows of a real tokenizer, padded_shape into the batches that a model takes."""

import json
from itertools import combinations

import models
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import StepError
from engine.kit.bench import sample_rows
from engine.kit.bench.sample_report import ORDERS
from engine.kit.inputs.token_rows import RowLimits
from engine.kit.onnx.onnx_files import Input
from engine.recipe.values import Range

TEXTS = ("the plot was good and the film was good", "a good film", "bad", "where is it?")
SPECS = {name: Input(name, "int64", ("batch", "sequence")) for name in ("input_ids", "attention_mask")}


@pytest.fixture
def checkpoint(tmp_path):
    models.save_tokenizer(tmp_path / "checkpoint")
    (tmp_path / "checkpoint" / "config.json").write_text('{"model_type": "bert"}')
    return tmp_path / "checkpoint"


def file_of(tmp_path, texts=TEXTS):
    path = tmp_path / "samples.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return path


def profile(batch, tokens):
    return {"batch": Range.model_validate(batch), "sequence": Range.model_validate(tokens)}


def test_rows_have_the_lengths_of_the_model_s_own_tokenizer(checkpoint, tmp_path):
    rows = sample_rows.read(file_of(tmp_path), checkpoint, SPECS)
    assert rows.lengths == [11, 5, 3, 6]  # words and marks, and two special tokens
    assert rows.of_texts == 4
    cut = sample_rows.read(file_of(tmp_path), checkpoint, SPECS, longest=6)
    assert cut.lengths == [6, 5, 3, 6]
    assert cut.tokenizer.longest == 6


def test_batches_are_padded_to_their_longest_row_and_masked(checkpoint, tmp_path):
    rows = sample_rows.read(file_of(tmp_path), checkpoint, SPECS)
    arrival = rows.batches(2, "arrival")
    by_length = rows.batches(2, "sorted")
    assert [batch["input_ids"].shape for batch in arrival] == [(2, 11), (2, 6)]
    assert [batch["input_ids"].shape for batch in by_length] == [(2, 5), (2, 11)]
    assert by_length[0]["attention_mask"].sum(axis=1).tolist() == [3, 5]
    assert all(batch["input_ids"].dtype == np.int64 for batch in by_length)


def test_a_batch_gets_the_shape_of_the_smallest_profile_that_holds_it(checkpoint, tmp_path):
    profiles = [profile(2, 8), profile(2, 16)]
    rows = sample_rows.read(file_of(tmp_path, TEXTS[:3]), checkpoint, SPECS, profiles=profiles)
    shapes = [batch["input_ids"].shape for batch in rows.batches(2, "sorted")]
    assert shapes == [(2, 8), (2, 16)]  # the last batch has one row, which is repeated
    last = rows.batches(2, "sorted")[1]["input_ids"]
    assert (last[0] == last[1]).all()
    assert rows.takes(1)
    assert not rows.takes(3)


def test_a_batch_that_no_profile_takes_is_an_error_with_the_profiles(checkpoint, tmp_path):
    rows = sample_rows.read(file_of(tmp_path), checkpoint, SPECS, profiles=[profile([1, 2, 4], [1, 4, 8])])
    with pytest.raises(StepError, match="no profile takes a batch of 2 samples with up to 11 tokens") as caught:
        rows.batches(2, "arrival")
    assert "profile 0: batch 1 to 4, tokens 1 to 8" in str(caught.value)


def test_a_graph_of_a_fixed_batch_gets_full_batches(checkpoint, tmp_path):
    specs = {name: Input(name, "int64", (4, "sequence")) for name in ("input_ids", "attention_mask")}
    rows = sample_rows.read(file_of(tmp_path, TEXTS[:3]), checkpoint, specs)
    assert [batch["input_ids"].shape for batch in rows.batches(4, "arrival")] == [(4, 11)]


def test_of_a_large_file_the_measured_texts_are_spread_evenly(checkpoint, tmp_path):
    texts = ["good " * (1 + number // 512) for number in range(1024)]
    rows = sample_rows.read(file_of(tmp_path, texts), checkpoint, SPECS)
    assert rows.of_texts == 1024
    assert len(rows.rows) == sample_rows.MOST_TEXTS
    assert rows.lengths == [3] * 256 + [4] * 256


def test_samples_of_a_model_without_a_tokenizer_have_no_lengths(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(StepError, match="has no tokenizer"):
        sample_rows.read(file_of(tmp_path), tmp_path, SPECS)
    with pytest.raises(StepError, match="takes no tokens"):
        sample_rows.read(file_of(tmp_path), tmp_path, {"x": Input("x", "float32", ("batch", 3))})


LENGTHS = st.lists(st.integers(1, 120), min_size=1, max_size=40)


def computed(lengths, size, order):
    groups = sample_rows.batches(lengths, size, order)
    return sum(len(group) * max(lengths[index] for index in group) for group in groups)


@given(LENGTHS, st.integers(1, 9), st.sampled_from(ORDERS))
def test_every_row_is_in_one_batch_and_only_the_last_batch_is_smaller(lengths, size, order):
    groups = sample_rows.batches(lengths, size, order)
    chosen = [index for group in groups for index in group]
    assert sorted(chosen) == list(range(len(lengths)))
    if order == "arrival":
        assert chosen == sorted(chosen)
    else:
        assert [lengths[index] for index in chosen] == sorted(lengths)
    assert all(len(group) == size for group in groups[:-1])
    assert 1 <= len(groups[-1]) <= size


@given(st.lists(st.integers(1, 120), min_size=1, max_size=8).map(lambda each: each * 4))
def test_sorted_full_batches_never_need_more_positions(lengths):
    assert computed(lengths, 4, "sorted") <= computed(lengths, 4, "arrival")
    assert computed(lengths, 1, "sorted") == computed(lengths, 1, "arrival") == sum(lengths)


@pytest.mark.parametrize(
    ("rows", "longest", "shape"),
    [(1, 9, (1, 16)), (1, 17, (1, 17)), (3, 9, (8, 32)), (9, 9, None), (1, 65, None)],
)
def test_a_batch_is_padded_to_the_smallest_profile_that_holds_it(rows, longest, shape):
    allowed = (RowLimits((8, 8), (32, 32)), RowLimits((1, 1), (16, 64)))
    assert sample_rows.padded_shape(rows, longest, allowed) == shape


@given(LENGTHS, st.integers(1, 4))
def test_buckets_need_as_few_positions_as_the_best_of_all_choices(lengths, most):
    ends = sorted({-(-length // 8) * 8 for length in lengths})
    best = {
        count: min(sample_rows.positions(lengths, (*inner, ends[-1])) for inner in combinations(ends[:-1], count - 1))
        for count in range(1, min(most, len(ends)) + 1)
    }
    buckets = sample_rows.buckets(lengths, most=most)
    assert len(buckets) <= most
    assert list(buckets) == sorted(set(buckets))
    assert sample_rows.positions(lengths, buckets) == best[len(buckets)]
    if len(buckets) > 1:  # the last bucket is worth its place
        assert best[len(buckets)] <= 0.95 * best[len(buckets) - 1]


@given(LENGTHS, st.integers(0, 20))
def test_no_bucket_is_longer_than_the_model_takes(lengths, more):
    longest = max(lengths) + more
    buckets = sample_rows.buckets(lengths, longest=longest)
    assert max(lengths) <= buckets[-1] <= longest
    assert all(bucket % 8 == 0 or bucket == longest for bucket in buckets)


@given(st.integers(1, 50), st.integers(1, 50))
def test_evenly_spaced_items_are_distinct_and_begin_with_the_first(count, most):
    chosen = sample_rows.evenly(count, most)
    assert len(set(chosen)) == min(count, most)
    assert chosen == sorted(chosen)
    assert chosen[0] == 0
    assert chosen[-1] < count
