"""The lines that show each kind of answer to people."""

import base64
import io

import numpy as np
from PIL import Image

from engine.client import answers


def test_answers_of_each_kind_are_shown_by_what_they_are_called():
    def shown(**row):
        texts = {name for name, value in row.items() if isinstance(np.ravel(value)[0], bytes)}
        arrays = {name: np.array(value, dtype=object if name in texts else None) for name, value in row.items()}
        return list(answers.shown(arrays))

    assert shown(labels=[b"GOOD", b"BAD"], scores=[0.75, 0.25], logits=[1.0, 0.0]) == ["GOOD  0.7500", "BAD   0.2500"]
    tokens = {"tokens": [b"[CLS]", b"Ada", b"is"], "labels": [b"PER", b"PER", b"O"], "scores": [0.5, 0.5, 0.5]}
    assert shown(**tokens, offsets=[[-1, -1], [0, 3], [4, 6]]) == ["Ada  PER  0.5000  characters 0 to 3"]
    assert shown(answer=[b"Ada"], score=[0.5], start=[3], end=[6]) == ["Ada  0.5000  characters 3 to 6"]
    assert shown(tokens=[[b"a", b"b"], [b"", b""]], scores=[[0.5, 0.25], [0, 0]]) == ["mask 1: a 0.5000  b 0.2500"]
    assert shown(text=[b"on"], token_ids=[4, 5, -1], finish_reason=[b"stop"]) == [
        "on",
        "(2 tokens, finish_reason: stop)",
    ]
    assert shown(y=[[1.5, 2.5]]) == ["y: 1 x 2 float64: 1.5, 2.5"]
    assert answers.as_json({"y": np.array([np.nan, 1.0])}) == {"y": [None, 1.0]}


def test_objects_and_masks_are_shown_in_pixels(tmp_path):
    labels = np.array([b"cat", b"train", b""], dtype=object)
    boxes = np.array([[1, 2, 30.25, 4], [5, 6, 7, 8], [-1, -1, -1, -1]], np.float32)
    row = {"labels": labels, "scores": np.array([0.9, 0.5, 0]), "boxes": boxes}
    assert list(answers.shown(row)) == ["cat    0.9000  1.0 2.0 30.2 4.0", "train  0.5000  5.0 6.0 7.0 8.0"]
    assert list(answers.shown({name: array[:0] for name, array in row.items()})) == ["no object"]
    Image.fromarray(np.zeros((3, 70), np.uint8)).save(file := io.BytesIO(), "PNG")
    mask = {"mask": np.array([file.getvalue()], dtype=object), "labels": labels}
    assert list(answers.shown(mask)) == ["mask of 70 x 3 pixels: cat, train"]
    assert base64.b64decode(answers.as_json(mask)["mask"][0]) == file.getvalue()
