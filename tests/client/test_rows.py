"""Rows of a query, read in the form that recipes use."""

import pytest

from engine.client import rows
from engine.errors import UsageError


def test_samples_are_read_as_recipes_have_them(tmp_path):
    (tmp_path / "dot.png").write_bytes(b"\x89PNG")
    lines = ['{"text": "a\u2028b", "label": 1}', "", '{"question": "q", "context": "c"}', '{"image": "dot.png"}']
    (tmp_path / "s.jsonl").write_text("\n".join(lines), "utf-8")
    read = rows.collect(files=[str(tmp_path / "s.jsonl")]).rows
    assert [row.texts for row in read] == [("a\u2028b",), ("q", "c"), ()]
    assert read[2].image == b"\x89PNG"
    wrong = ('{"image": "dot.png", "texts": "a"}', '{"image": "dot.png", "texts": [1]}', '{"texts": ["a"]}')
    for broken in (
        '{"text": 1}',
        "[1]",
        '{"txt": "a"}',
        '{"text": "a", "context": "b"}',
        '{"text": "\\ud800"}',
        *wrong,
    ):
        (tmp_path / "s.jsonl").write_text(broken)
        with pytest.raises(UsageError):
            rows.collect(files=[str(tmp_path / "s.jsonl")])
