"""Shortened samples: real rows of tokens with their frame, and nothing made of what is no text."""

import numpy as np

from engine.kit.quantization.qdq import shortened


def text(*tokens, mask=None):
    ids = np.array([tokens], np.int64)
    return {"input_ids": ids, "attention_mask": np.ones_like(ids) if mask is None else np.array([mask], np.int64)}


def test_a_shortened_text_keeps_its_first_and_last_token():
    texts = [text(101, 7, 8, 9, 10, 11, 12, 102) for _ in range(5)]
    rows = [sample["input_ids"].tolist()[0] for sample in shortened.with_some(texts, every=1)]
    assert rows[1::2] == [
        [101, 7, 102],
        [101, 7, 8, 102],
        [101, 7, 8, 9, 102],
        [101, 7, 8, 9, 10, 102],
        [101, 7, 102],
    ]


def test_what_is_short_padded_or_no_text_gets_no_copy():
    images = {"images": np.zeros((1, 3, 8, 8), np.float32)}
    padded = text(101, 7, 8, 9, 102, 0, 0, mask=[1, 1, 1, 1, 1, 0, 0])
    samples = [images, padded, text(101, 7, 102)]
    assert shortened.with_some(samples, every=1) == samples
