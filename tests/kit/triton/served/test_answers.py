"""Answers as they are served: classes, labels of tokens, words for masks, and a span of the context."""

import json

import numpy as np
import pytest

from engine.kit.triton.served.answer import Work as Answer
from engine.kit.triton.served.classify import Work as Classify
from engine.kit.triton.served.fill import Work as Fill
from engine.kit.triton.served.tag import Work as Tag


@pytest.fixture
def words(tmp_path):
    (tmp_path / "vocabulary.json").write_text(json.dumps(["a", "b", "[M]", "d"]))
    return tmp_path


def test_scores_come_best_first_and_do_not_overflow(tmp_path):
    logits = np.array([[1000.0, -1000.0, 0.0]], dtype=np.float32)
    for score, expected in {"softmax": [1, 0, 0], "sigmoid": [1, 0.5, 0], "number": [1000, 0, -1000]}.items():
        outputs = Classify(tmp_path, {"labels": ["a", "b", "c"], "scores": score})({"logits": logits})
        assert np.allclose(outputs["scores"], [expected])
        assert outputs["labels"].tolist() == [[b"a", b"c", b"b"]]


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


def spans(start, end, offsets, text="abcdef"):
    """Logits for one row whose context has six letters."""
    given = {
        "start_logits": np.array([start], dtype=np.float32),
        "end_logits": np.array([end], dtype=np.float32),
        "offsets": np.array([offsets]),
        "TEXT": np.array([[b"?", text.encode()]], dtype=object),
    }
    return {name: value[0, 0] for name, value in Answer(None, {"longest": 2})(given).items()}


LETTERS = [(-1, -1), *((n, n + 1) for n in range(6))]


def test_an_answer_lies_within_the_context_ends_after_it_starts_and_is_not_too_long():
    assert spans([99, 0, 0, 5, 0, 0, 0], [99, 9, 0, 0, 4, 0, 9], LETTERS)["answer"] == b"cd"
    assert spans([99, 0, 0, 0, 0, 0, 0], [99, 0, 0, 0, 0, 0, 0], LETTERS)["start"] >= 0


def test_shares_too_small_for_a_number_still_make_an_answer():
    span = spans([0, 0, 900, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 2000], LETTERS)
    assert (span["start"], span["end"], span["score"]) == (4, 6, 0)


def test_without_a_context_there_is_no_answer():
    span = spans([1, 2], [2, 1], [(-1, -1)] * 2, text="")
    assert span == {"answer": b"", "score": 0, "start": -1, "end": -1}
