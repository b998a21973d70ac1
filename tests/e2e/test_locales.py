"""Names with umlauts in a locale without them: `LC_ALL=C`, also where Python is told to name files in ASCII."""

import models
import pytest
import tiny_project
from program import Program

LOCALES = {
    "C": {"LC_ALL": "C"},
    "POSIX": {"LC_ALL": "POSIX", "PYTHONCOERCECLOCALE": "0"},
    "ASCII": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
}
RECIPE = """\
name: tiny
model: {source: modell-ä/model.onnx, tokenizer: modell-ä, task: text-classification}
profiles: [{batch: [1, 1, 4], sequence: [1, 16, 32]}]
validate: {samples: sätze.jsonl}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A project whose folder, recipe, model and samples have umlauts in their names."""
    folder = tmp_path_factory.mktemp("prüfung") / "größe"
    folder.mkdir()
    models.classifier_with_tokenizer(folder / "modell-ä")
    (folder / "sätze.jsonl").write_text(tiny_project.SAMPLES)
    (folder / "groß.yaml").write_text(RECIPE, encoding="utf-8")
    (folder / "pyproject.toml").write_text("")
    return folder


@pytest.mark.parametrize("locale", LOCALES)
@pytest.mark.sample(1)
def test_a_recipe_is_checked_and_built_and_shown_in_any_locale(folder, locale):
    program = Program(folder)
    program.environment |= LOCALES[locale]
    shown = r"gro\u00df.yaml" if locale == "ASCII" else "groß.yaml"
    assert program("check", "groß.yaml", expect=0).stdout.startswith(f"{shown}: tiny is fine")
    assert program("check", "größe.yaml", expect=2).stderr.endswith(f"hint: did you mean {shown}?\n")
    program("build", "groß.yaml", expect=0)
    assert "cached  validate" in program("why", "groß.yaml", expect=0).stdout
    assert "package" in program("show", "groß.yaml", expect=0).stdout
