"""The draft of an ONNX file, by the inputs of its graph."""

from engine.drafts import onnx_file
from engine.drafts.draft import Draft
from tests.support import models


def test_axes_of_any_size_get_a_profile(tmp_path):
    draft = Draft({"name": "it"})
    onnx_file.add(draft, models.onnx_vision(tmp_path / "v.onnx"), task=None, on="cpu")
    assert "batch" in draft.fields["profiles"][0]
    assert "task" not in draft.fields.get("model", {})
    assert draft.samples is not None
    assert any("does not say what it is for" in each for each in draft.about)
