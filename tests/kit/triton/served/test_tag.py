"""Labels of tokens as they are served."""

import json

import numpy as np
import pytest

from engine.kit.triton.served.tag import Work as Tag


@pytest.fixture
def words(tmp_path):
    (tmp_path / "vocabulary.json").write_text(json.dumps(["a", "b", "[M]", "d"]))
    return tmp_path


def test_padding_has_no_label(words):
    inputs = {
        "logits": np.array([[[0.0, 2.0], [5.0, 0.0]]], dtype=np.float32),
        "input_ids": np.array([[9, 0]]),
        "attention_mask": np.array([[1, 0]]),
    }
    outputs = Tag(words, {"labels": ["x", "y"], "scores": "softmax"})(inputs)
    assert outputs["labels"].tolist() == [[b"y", b""]]
    assert outputs["tokens"].tolist() == [[b"", b""]]  # an id that the tokenizer does not know, and padding
    assert np.allclose(outputs["scores"], [[np.exp(2) / (1 + np.exp(2)), 0]])
