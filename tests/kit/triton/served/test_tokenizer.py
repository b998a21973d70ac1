"""The tokenizer in a package: what it refuses, and before which work."""

import numpy as np
import pytest
import tokenizers

from engine.kit.triton.served.tokenizer import Work


@pytest.fixture
def work(tmp_path):
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0, "[UNK]": 1}, unk_token="[UNK]"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    words.save(str(tmp_path / "tokenizer.json"))
    return Work(tmp_path, {"outputs": {"input_ids": "int64"}, "offsets_of": 0, "max_text_bytes": 8})


@pytest.fixture
def padding_work(tmp_path):
    """A tokenizer that pads to buckets, in the same way as it pads to the longest text of a request."""
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0, "[UNK]": 1, "[PAD]": 2}, unk_token="[UNK]"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    words.enable_padding(direction="left", pad_id=2, pad_token="[PAD]")
    words.save(str(tmp_path / "tokenizer.json"))
    outputs = {"input_ids": "int64", "attention_mask": "int64"}
    return Work(tmp_path, {"outputs": outputs, "offsets_of": 0, "max_text_bytes": 99, "buckets": [2, 4]})


@pytest.mark.parametrize(
    ("rows", "ids", "mask"),
    [
        ([["a"]], [[2, 0]], [[0, 1]]),
        ([["a a"]], [[0, 0]], [[1, 1]]),
        ([["a a a"], ["a"]], [[2, 0, 0, 0], [2, 2, 2, 0]], [[0, 1, 1, 1], [0, 0, 0, 1]]),
        ([["a a a a a"]], [[0, 0, 0, 0, 0]], [[1, 1, 1, 1, 1]]),
    ],
)
def test_texts_are_padded_to_the_smallest_bucket_that_holds_them(padding_work, rows, ids, mask):
    outputs = padding_work(texts(*rows))
    assert outputs["input_ids"].tolist() == ids
    assert outputs["attention_mask"].tolist() == mask


def texts(*rows):
    return {"TEXT": np.array([[each.encode() for each in row] for row in rows], dtype=object)}


def test_a_text_of_as_many_bytes_as_the_limit_is_read(work):
    assert work(texts(["a a a ä"]))["input_ids"].tolist() == [[0, 0, 0, 1]]


@pytest.mark.parametrize("rows", [(["a a a ääää"],), (["a"], ["a" * 11]), (["a", "a" * 11],)])
def test_a_longer_text_is_refused_before_it_is_read(work, rows, monkeypatch):
    monkeypatch.setattr(work, "tokenizer", None)
    with pytest.raises(ValueError, match=r"TEXT: a text of 1[14] bytes; this model takes at most 8 bytes"):
        work(texts(*rows))
