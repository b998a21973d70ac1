"""The lines that show each kind of answer to people."""

import numpy as np

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
