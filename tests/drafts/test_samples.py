"""The samples that a new recipe starts with."""

import io
import json

import numpy as np
from PIL import Image

from engine import tasks
from engine.drafts import samples


def test_images_are_pictures_of_several_sizes():
    files = samples.images(tasks.find("image-classification"))
    pictures = [Image.open(io.BytesIO(content)) for content in files.values()]
    assert {picture.mode for picture in pictures} == {"RGB"}
    assert len({picture.size for picture in pictures}) == 4
    assert len(set(files.values())) == len(files) == 8
    assert min(np.asarray(picture).std() for picture in pictures) > 20
    assert sum(map(len, files.values())) < 1_000_000


def test_pictures_of_a_zero_shot_classifier_have_lines_with_their_texts():
    files = samples.images(tasks.find("zero-shot-image-classification"))
    rows = [json.loads(line) for line in files.pop(samples.LINES).splitlines()]
    assert [row["image"] for row in rows] == list(files)
    assert all(row["texts"] == ["a photo of a cat", "a photo of a dog"] for row in rows)


def test_tokens_are_below_the_vocabulary():
    arrays = np.load(io.BytesIO(samples.tokens(("input_ids", "attention_mask", "token_type_ids"), 50, 12)))
    assert arrays["input_ids"].max() < 50
    assert arrays["attention_mask"].min() == 1
    assert arrays["token_type_ids"].max() == 0
