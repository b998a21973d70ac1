"""Answers as they are served: a span of the context."""

import numpy as np

from engine.kit.triton.served.answer import Work as Answer


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
    outside = spans([99, 0, 0, 0, 0, 0, 0], [99, 0, 0, 0, 0, 0, 0], LETTERS)
    assert outside["start"] >= 0


def test_shares_too_small_for_a_number_still_make_an_answer():
    span = spans([0, 0, 900, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 2000], LETTERS)
    assert (span["start"], span["end"], span["score"]) == (4, 6, 0)


def test_without_a_context_there_is_no_answer():
    span = spans([1, 2], [2, 1], [(-1, -1)] * 2, text="")
    assert span == {"answer": b"", "score": 0, "start": -1, "end": -1}
