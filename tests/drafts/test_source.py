"""What the argument MODEL names."""

from pathlib import Path

import pytest

from engine.drafts import source
from engine.errors import UsageError


def test_a_path_is_relative_to_the_recipe(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m").mkdir()
    named = source.of("m", tmp_path / "recipes")
    assert (named.written, named.name) == ("../m", "m")


@pytest.mark.parametrize(("model", "written"), [("a/b", "hf:a/b"), ("hf:a/b", "hf:a/b"), ("timm:x", "timm:x")])
def test_a_name_of_the_hub_needs_no_prefix(tmp_path, monkeypatch, model, written):
    monkeypatch.chdir(tmp_path)
    assert source.of(model, tmp_path).written == written


@pytest.mark.parametrize("model", ["./no", "no.onnx", "a b", "a/b/c"])
def test_a_path_that_is_not_there_is_no_name_of_the_hub(tmp_path, monkeypatch, model):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="there is no"):
        source.of(model, tmp_path)


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
        source.of(model, tmp_path)
    assert refused.value.hint == hint
    if hint.startswith("did you mean "):
        assert Path(hint.removeprefix("did you mean ").rstrip("?").split()[0]).exists()


def test_a_name_like_that_of_a_recipe_is_still_a_name_of_the_hub(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny.yaml").touch()
    assert source.of("tiny", tmp_path).written == "hf:tiny"
