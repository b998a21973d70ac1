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


def texts(*rows):
    return {"TEXT": np.array([[each.encode() for each in row] for row in rows], dtype=object)}


def test_a_text_of_as_many_bytes_as_the_limit_is_read(work):
    assert work(texts(["a a a ä"]))["input_ids"].tolist() == [[0, 0, 0, 1]]


@pytest.mark.parametrize("rows", [(["a a a ääää"],), (["a"], ["a" * 11]), (["a", "a" * 11],)])
def test_a_longer_text_is_refused_before_it_is_read(work, rows, monkeypatch):
    monkeypatch.setattr(work, "tokenizer", None)
    with pytest.raises(ValueError, match=r"TEXT: a text of 1[14] bytes; this model takes at most 8 bytes"):
        work(texts(*rows))
