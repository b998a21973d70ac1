"""Models of every kind through the whole program, each to a validated package."""

import json

import models
import pytest

PLAIN = "name: m\nmodel: {source: model}\n"
SMALL = "validate: {precision_share: 0.4}\n"
"""In tiny models, attention is a larger share of the work than in real ones, and stays in fp32."""
SEVEN_BITS = {"isa": "avx2"}
"""The target whose int8 weights have 7 bits, so that no sum saturates on a CPU without VNNI."""


@pytest.mark.slow
@pytest.mark.parametrize("architecture", models.ARCHITECTURES)
@pytest.mark.whole("test_tiny.py builds a checkpoint")
def test_a_local_directory_becomes_a_validated_package_in_either_precision(empty, architecture):
    models.checkpoint(empty.folder / "model", architecture, task="text-classification")
    (empty.folder / "r.yaml").write_text(
        PLAIN + SMALL + f"target: {json.dumps(SEVEN_BITS)}\nmatrix: {{precision: [fp32, int8]}}\n"
    )
    packages = empty.events("r.yaml")[-1]["packages"]
    assert set(packages) == {"m-fp32", "m-int8"}
    for name in packages:
        assert (empty.folder / "build" / name / name / "1" / "model.onnx").is_file()


@pytest.mark.slow
@pytest.mark.parametrize("architecture", models.ARCHITECTURES)
@pytest.mark.whole("test_tiny.py builds a checkpoint")
def test_a_model_saved_without_a_tokenizer_is_validated_on_random_tensors(empty, architecture):
    models.checkpoint(empty.folder / "model", architecture, tokenizer=False)
    (empty.folder / "r.yaml").write_text(PLAIN)
    assert empty.states("r.yaml")["package"] == "built"
    shown = empty.shown("r.yaml")
    assert shown["validation"]["random"] is True


THEIRS = {
    "text": (models.onnx_text, {"batch": [1, 2, 4], "sequence": [1, 8, 16]}),
    "vision": (models.onnx_vision, {"batch": [1, 2, 4]}),
    "audio": (models.onnx_audio, {"batch": [1, 1, 2], "samples": [800, 1600, 3200]}),
    "recurrent": (models.onnx_recurrent, {"batch": [1, 1, 2], "time": [1, 10, 20]}),
    "several inputs": (models.onnx_many_inputs, {"batch": [1, 2, 4]}),
}


@pytest.mark.parametrize("precision", ["fp32", "int8"])
@pytest.mark.parametrize("kind", THEIRS)
@pytest.mark.sample(1)
def test_an_onnx_file_of_someone_else_becomes_a_validated_package_without_torch(empty, kind, precision):
    write, profile = THEIRS[kind]
    write(empty.folder / "theirs.onnx")
    recipe = {"name": "m", "model": {"source": "theirs.onnx"}, "precision": precision, "profiles": [profile]}
    recipe["target"] = SEVEN_BITS
    (empty.folder / "r.yaml").write_text(json.dumps(recipe))
    for package in ("torch", "transformers"):
        (empty.folder / "blocked" / package).mkdir(parents=True)
        (empty.folder / "blocked" / package / "__init__.py").write_text(f"raise ImportError('no {package} here')")
    empty.environment["PYTHONPATH"] = str(empty.folder / "blocked")
    if (kind, precision) in (("vision", "int8"), ("audio", "int8")):
        assert (
            "Too little of the model computes in int8: precision_share 0" in empty("build", "r.yaml", expect=4).stderr
        )
        return
    states = empty.states("r.yaml")
    assert states["package"] == "built"
    assert "export" not in states
    assert (empty.folder / "build" / "m" / "m" / "config.pbtxt").is_file()


def test_an_onnx_file_with_free_axes_and_no_profile_gets_one_proposed(empty):
    models.onnx_audio(empty.folder / "theirs.onnx")
    (empty.folder / "r.yaml").write_text("name: m\nmodel: {source: theirs.onnx}\n")
    done = empty("build", "r.yaml", expect=2)
    assert "samples" in done.stderr
    assert "profiles:" in done.stderr
