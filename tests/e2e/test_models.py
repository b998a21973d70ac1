"""Models of every kind through the whole program, each to a validated package."""

import json

import models
import pytest

PLAIN = "name: m\nmodel: {source: model}\nbench: {shapes: [{batch: 1, sequence: 8}]}\n"


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["fp32", "int8"])
@pytest.mark.parametrize("architecture", models.ARCHITECTURES)
def test_a_local_directory_becomes_a_validated_package(empty, architecture, precision):
    models.checkpoint(empty.folder / "model", architecture, task="text-classification")
    (empty.folder / "r.yaml").write_text(PLAIN)
    assert empty.states("r.yaml", "--set", f"precision={precision}")["package"] == "built"
    assert (empty.folder / "build" / "m" / "m" / "1" / "model.onnx").is_file()


@pytest.mark.slow
@pytest.mark.parametrize("architecture", models.ARCHITECTURES)
def test_a_model_saved_without_a_tokenizer_is_validated_on_random_tensors(empty, architecture):
    models.checkpoint(empty.folder / "model", architecture, tokenizer=False)
    (empty.folder / "r.yaml").write_text(PLAIN)
    assert empty.states("r.yaml")["package"] == "built"
    [shown] = json.loads(empty("show", "r.yaml", "--json", expect=0).stdout)
    assert shown["validation"]["random"] is True


NO_TORCH = "import sys; sys.modules['torch'] = sys.modules['transformers'] = None\n"


@pytest.mark.slow
@pytest.mark.parametrize("kind", models.ONNX_KINDS)
def test_an_onnx_file_of_someone_else_becomes_a_validated_package_without_torch(empty, kind):
    profile = models.onnx_file(empty.folder / "theirs.onnx", kind)
    recipe = {"name": "m", "model": {"source": "theirs.onnx"}, "profiles": [profile] if profile else []}
    (empty.folder / "r.yaml").write_text(json.dumps(recipe))
    # A module that cannot be imported, as where it is not installed; workers read sitecustomize, too.
    (empty.folder / "blocked").mkdir()
    (empty.folder / "blocked" / "torch.py").write_text("raise ImportError('no torch here')")
    empty.environment["PYTHONPATH"] = str(empty.folder / "blocked")
    states = empty.states("r.yaml")
    assert states["package"] == "built"
    assert "export" not in states
    assert (empty.folder / "build" / "m" / "m" / "config.pbtxt").is_file()
