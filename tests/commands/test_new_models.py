"""`recipe new` on many models that it has not seen: the new recipe passes `check` and builds, or one error says why."""

import pytest

from tests.support import unseen_models
from tests.support.program import Program

IN_CI = ("detector", "series", "tabular")
"""The models that every run builds; `--whole` builds all."""
REFUSED = {
    "clip": ("the task image-classification is not supported yet", "name the .onnx file"),
    "vit": ("the task image-classification is not supported yet", "name the .onnx file"),
    "resnet": ("the task image-classification is not supported yet", "name the .onnx file"),
    "whisper": ("WhisperForConditionalGeneration takes no text", "export the model to ONNX"),
    "wav2vec2": ("the model does not say what it is for", "export a model of another kind to ONNX"),
    "single-number": ("input scale is a single number without axes", "export the model with the shape [1]"),
    "words": ("input text is text", "hint: "),
}


def test_the_models_are_many():
    assert len(unseen_models.NAMES) >= 20
    assert set(IN_CI) < set(unseen_models.NAMES)
    assert REFUSED.keys() == unseen_models.OUTSIDE.keys()


@pytest.mark.parametrize(
    "name", [name if name in IN_CI else pytest.param(name, marks=pytest.mark.whole) for name in unseen_models.NAMES]
)
def test_a_new_recipe_of_an_unseen_model_is_built_as_it_is(tmp_path, name):
    program = Program(tmp_path)
    done = program("new", unseen_models.write(name, tmp_path), "-o", "it.yaml", expect=0)
    assert "it.yaml passes `recipe check`" in done.stdout
    program("build", "it.yaml", expect=0)
    assert list((tmp_path / "build").glob("*/*/config.pbtxt"))


@pytest.mark.parametrize(
    "name",
    [name if name in ("vit", "single-number") else pytest.param(name, marks=pytest.mark.whole) for name in REFUSED],
)
def test_a_model_that_no_recipe_can_build_is_one_clear_error(tmp_path, name):
    done = Program(tmp_path)("new", unseen_models.write(name, tmp_path), "-o", "it.yaml")
    assert done.returncode in (1, 2)
    assert done.stderr.count("error: ") == 1
    for words in REFUSED[name]:
        assert words in done.stderr
    assert "wrote " not in done.stdout
    assert not list(tmp_path.glob("*.yaml"))
