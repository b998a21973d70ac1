"""Samples as rows of a real tokenizer, padded into the batches that a model takes."""

import json

import models
import numpy as np
import pytest

from engine.errors import StepError
from engine.kit.bench import sample_rows
from engine.kit.bench.mixed_lengths import SampleOrder
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
    arrival = rows.batches(2, SampleOrder.ARRIVAL)
    by_length = rows.batches(2, SampleOrder.SORTED)
    assert [batch["input_ids"].shape for batch in arrival] == [(2, 11), (2, 6)]
    assert [batch["input_ids"].shape for batch in by_length] == [(2, 5), (2, 11)]
    assert by_length[0]["attention_mask"].sum(axis=1).tolist() == [3, 5]
    assert all(batch["input_ids"].dtype == np.int64 for batch in by_length)


def test_a_batch_gets_the_shape_of_the_smallest_profile_that_holds_it(checkpoint, tmp_path):
    profiles = [profile(2, 8), profile(2, 16)]
    rows = sample_rows.read(file_of(tmp_path, TEXTS[:3]), checkpoint, SPECS, profiles=profiles)
    shapes = [batch["input_ids"].shape for batch in rows.batches(2, SampleOrder.SORTED)]
    assert shapes == [(2, 8), (2, 16)]  # the last batch has one row, which is repeated
    last = rows.batches(2, SampleOrder.SORTED)[1]["input_ids"]
    assert (last[0] == last[1]).all()
    assert rows.takes(1)
    assert not rows.takes(3)


def test_a_batch_that_no_profile_takes_is_an_error_with_the_profiles(checkpoint, tmp_path):
    rows = sample_rows.read(file_of(tmp_path), checkpoint, SPECS, profiles=[profile([1, 2, 4], [1, 4, 8])])
    with pytest.raises(StepError, match="no profile takes a batch of 2 samples with up to 11 tokens") as caught:
        rows.batches(2, SampleOrder.ARRIVAL)
    assert "profile 0: batch 1 to 4, tokens 1 to 8" in str(caught.value)


def test_a_graph_of_a_fixed_batch_gets_full_batches(checkpoint, tmp_path):
    specs = {name: Input(name, "int64", (4, "sequence")) for name in ("input_ids", "attention_mask")}
    rows = sample_rows.read(file_of(tmp_path, TEXTS[:3]), checkpoint, specs)
    assert [batch["input_ids"].shape for batch in rows.batches(4, SampleOrder.ARRIVAL)] == [(4, 11)]


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
