"""The draft of a model, with the name of its samples."""

from engine.drafts import model
from engine.drafts.source import ModelSource
from tests.support import models


def test_samples_lie_beside_the_recipe(tmp_path):
    path = models.onnx_vision(tmp_path / "v.onnx")
    draft = model.draft(ModelSource("v.onnx", path), tmp_path / "it.yaml", task=None, on="cpu")
    assert draft.fields["validate"] == {"samples": "samples/it.npz"}
    assert draft.samples is not None
    assert draft.samples.name == "samples/it.npz"
