"""What MODEL names, and the draft of its recipe with the name of its samples."""

from pathlib import Path

import pytest

from engine.drafts import model
from engine.drafts.model import ModelSource, source_of
from engine.errors import UsageError
from tests.support import models


def test_samples_lie_beside_the_recipe(tmp_path):
    path = models.onnx_audio(tmp_path / "v.onnx")
    draft = model.draft(ModelSource("v.onnx", path), tmp_path / "it.yaml", task=None, on="cpu")
    assert draft.fields["validate"] == {"samples": "samples/it.npz"}
    assert draft.samples is not None
    assert draft.samples.name == "samples/it.npz"


def test_a_path_is_relative_to_the_recipe(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m").mkdir()
    named = source_of("m", tmp_path / "recipes")
    assert (named.written, named.name) == ("../m", "m")


@pytest.mark.parametrize(("model", "written"), [("a/b", "hf:a/b"), ("hf:a/b", "hf:a/b"), ("timm:x", "timm:x")])
def test_a_name_of_the_hub_needs_no_prefix(tmp_path, monkeypatch, model, written):
    monkeypatch.chdir(tmp_path)
    assert source_of(model, tmp_path).written == written


@pytest.mark.parametrize("model", ["./no", "no.onnx", "a b", "a/b/c"])
def test_a_path_that_is_not_there_is_no_name_of_the_hub(tmp_path, monkeypatch, model):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="there is no"):
        source_of(model, tmp_path)


@pytest.mark.parametrize(
    ("model", "hint"),
    [
        ("modles/bert", "did you mean models/bert or the model hf:modles/bert of the hub?"),
        ("models/brt", "did you mean models/bert or the model hf:models/brt of the hub?"),
        ("models\\bert", "did you mean models/bert?"),
        ("./modles", "did you mean models?"),
        ("models/nets.onnx", "did you mean models/net.onnx?"),
        ("far.onnx", "this folder holds no name like it; name a model's directory, an .onnx file, or hf:OWNER/NAME"),
    ],
)
def test_the_nearest_path_stands_in_the_hint_and_exists(tmp_path, monkeypatch, model, hint):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models" / "bert").mkdir(parents=True)
    (tmp_path / "models" / "net.onnx").touch()
    with pytest.raises(UsageError, match="there is no file or directory") as refused:
        source_of(model, tmp_path)
    assert refused.value.hint == hint
    if hint.startswith("did you mean "):
        assert Path(hint.removeprefix("did you mean ").rstrip("?").split()[0]).exists()


def test_a_name_like_that_of_a_recipe_is_still_a_name_of_the_hub(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny.yaml").touch()
    assert source_of("tiny", tmp_path).written == "hf:tiny"
