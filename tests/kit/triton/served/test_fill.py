"""Words for masks as they are served, and rows with fewer of them."""

import json

import numpy as np
import pytest

from engine.kit.triton.served.fill import Work as Fill


@pytest.fixture
def words(tmp_path):
    (tmp_path / "vocabulary.json").write_text(json.dumps(["a", "b", "[M]", "d"]))
    return tmp_path


def test_rows_with_fewer_masks_are_filled_up(words):
    ids = np.array([[2, 0, 2], [0, 2, 0]])
    logits = np.tile(np.array([0.0, 3, 1, 2, 9], dtype=np.float32), (2, 3, 1))
    outputs = Fill(words, {"mask": 2, "count": 2})({"input_ids": ids, "logits": logits})
    assert outputs["token_ids"].tolist() == [[[4, 1], [4, 1]], [[4, 1], [-1, -1]]]
    assert outputs["tokens"].tolist()[1] == [[b"", b"b"], [b"", b""]]  # the model knows more ids than the tokenizer
    assert outputs["scores"][1, 1].tolist() == [0, 0]
    assert np.isclose(outputs["scores"][0, 0, 0], np.exp(9) / np.exp([0, 3, 1, 2, 9]).sum())


def test_a_row_without_a_mask_is_an_error_of_its_request(words):
    with pytest.raises(ValueError, match="a text without a mask"):
        Fill(words, {"mask": 2, "count": 2})({"input_ids": np.array([[0, 2], [0, 0]]), "logits": np.zeros((2, 2, 5))})
