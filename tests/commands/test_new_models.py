"""`recipe new` on many models that it has not seen: the new recipe passes `check` and builds, or one error says why."""

import shlex
import subprocess
import sys

import pytest

from tests.support import unseen_models
from tests.support.program import Program

IN_CI = ("tabular",)
"""The models that every run builds; `--whole` builds all."""
REFUSED = {
    "clip": ("CLIPModel takes images and texts", "then: recipe new model.onnx"),
    "whisper": ("WhisperForConditionalGeneration takes no text", "export the model to ONNX"),
    "wav2vec2": ("Wav2Vec2ForCTC takes sound", "then: recipe new model.onnx"),
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
    [name if name in ("wav2vec2", "words") else pytest.param(name, marks=pytest.mark.whole) for name in REFUSED],
)
def test_a_model_that_no_recipe_can_build_is_one_clear_error(tmp_path, name):
    done = Program(tmp_path)("new", unseen_models.write(name, tmp_path), "-o", "it.yaml")
    assert done.returncode == 2
    assert done.stderr.count("error: ") == 1
    for words in REFUSED[name]:
        assert words in done.stderr
    assert "wrote " not in done.stdout
    assert not list(tmp_path.glob("*.yaml"))


@pytest.mark.parametrize("name", ["wav2vec2", pytest.param("clip", marks=pytest.mark.whole)])
@pytest.mark.whole("test_a_new_recipe_of_an_unseen_model_is_built_as_it_is")
def test_the_command_in_the_hint_exports_a_model_that_builds(tmp_path, name):
    program = Program(tmp_path)
    hint = program("new", unseen_models.write(name, tmp_path), expect=2).stderr.partition("hint: export it to ONNX: ")[
        2
    ]
    program_name, *words = shlex.split(hint.partition("; then: ")[0])
    assert program_name == "python"
    subprocess.run([sys.executable, *words], cwd=tmp_path, check=True, capture_output=True)
    program("new", "model.onnx", expect=0)
    program("build", "model.yaml", "--to", "validate", expect=0)
