"""The tensors that a new recipe starts with."""

import io

import numpy as np

from engine.drafts import samples


def test_images_have_the_size_of_the_model():
    content = samples.images("images", [3, 224, 100])
    assert np.load(io.BytesIO(content))["images"].shape == (4, 3, 224, 100)
    assert len(content) < 100_000


def test_tokens_are_below_the_vocabulary():
    arrays = np.load(io.BytesIO(samples.tokens(("input_ids", "attention_mask", "token_type_ids"), 50, 12)))
    assert arrays["input_ids"].max() < 50
    assert arrays["attention_mask"].min() == 1
    assert arrays["token_type_ids"].max() == 0
