"""What the argument MODEL names."""

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
