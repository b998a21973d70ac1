"""A model is not validated on what it was calibrated on: seen in the files, before anything is built."""

import json

import pytest

from engine import plan
from engine.builder.preflight.samples import look_at_content
from engine.errors import RecipeError
from engine.kit.inputs import overlap

RECIPE = """
name: m
model: {source: model.onnx}
target: {device: L4, runtime: tensorrt-rtx}
precision: int8
calibrate: {samples: ours.jsonl, limit: 3}
validate: {samples: theirs.jsonl}
"""


@pytest.fixture
def project(tmp_path):
    (tmp_path / "model.onnx").write_bytes(b"")
    (tmp_path / "r.yaml").write_text(RECIPE)
    overlap.shared.cache_clear()

    def write(ours, theirs):
        for name, samples in (("ours", ours), ("theirs", theirs)):
            lines = [each if isinstance(each, str) else json.dumps(each) for each in samples]
            (tmp_path / f"{name}.jsonl").write_text("\n".join(lines))
        return tmp_path / "r.yaml"

    return write


def test_a_sample_in_both_files_is_refused_by_its_line_whatever_its_label(project):
    path = project([{"text": "one"}, {"text": "two", "label": 1}], [{"label": 0, "text": "two"}, {"text": "three"}])
    [variant] = plan(path)
    with pytest.raises(RecipeError, match="1 of the samples") as caught:
        look_at_content(variant)  # as `recipe check` does, and a build before its first job
    assert caught.value.facts == ('line 2: {"text": "two"}',)
    assert "r.yaml:6" in str(caught.value)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ([{"text": "one"}], [{"text": "two"}]),
        ([{"text": "one"}], [{"text": "one", "pair": "two"}]),
        ([{"text": str(number)} for number in range(4)], [{"text": "3"}]),
        (["no json"], [{"text": "one"}]),
    ],
    ids=["others", "a pair", "beyond the limit", "not readable here"],
)
def test_what_differs_is_not_calibrated_on_or_cannot_be_read_passes(project, ours, theirs):
    folder = project(ours, theirs).parent
    assert overlap.shared(f"file:{folder}/ours.jsonl", f"file:{folder}/theirs.jsonl", 3) == ()
