"""The whole error messages of wrong recipes, as snapshots."""

import pytest
import yaml

from engine import feasibility
from engine.errors import RecipeError
from engine.recipe import yaml_text
from engine.recipe.load import load

RECIPE = """\
# A recipe that each case spoils in one place.
name: minilm-sst2
model:
  source: model
  revision: main
target: {device: T4, runtime: tensorrt}
precision: fp16
profiles:
  - {batch: 1, sequence: [1, 16, 128]}
validate:
  samples: samples/few.jsonl
  cosine: 0.999
"""

CASES = {
    "a typo in a field": ("precision:", "precison:"),
    "a typo in a value": ("runtime: tensorrt", "runtime: tensor-rt"),
    "a wrong type": ("cosine: 0.999", "cosine: [0.999]"),
    "three faults": (
        "batch: 1, sequence: [1, 16, 128]}\nvalidate",
        "batch: one, sequence: [16, 1, 128]}\nvalid",
    ),
    "an unquoted revision": ("revision: main", "revision: 0123456"),
    "an unquoted number as text": ("revision: main", "revision: 1e3"),
    "a duplicate key": ("precision: fp16", "precision: fp16\nprecision: int8"),
    "an unclosed bracket": ("[1, 16, 128]}", "[1, 16, 128}"),
    "a tab": ("  revision", "\trevision"),
    "a profile out of order": ("[1, 16, 128]", "[128, 16, 1]"),
    "a path out of the project": ("source: model", "source: ../../model"),
    "a missing file": ("few.jsonl", "fwe.jsonl"),
    "a missing field": ("source: model", "task: fill-mask"),
    "what the hardware cannot do": ("precision: fp16", "precision: bf16"),
    "what is not supported yet": ("precision: fp16", "preprocess: {size: 384}"),
    "an unknown GPU": ("device: T4", "device: T44"),
    "an empty section": ("target: {device: T4, runtime: tensorrt}", "target:"),
}


@pytest.mark.parametrize(("old", "new"), CASES.values(), ids=CASES)
def test_message(project, snapshot, old, new):
    assert old in RECIPE
    path = project.write(RECIPE.replace(old, new), "recipes/minilm.yaml")
    (project.root / "recipes" / "model").mkdir()
    project.write("{}", "recipes/samples/few.jsonl")
    with pytest.raises(RecipeError) as caught:
        checked(path)
    assert str(caught.value).replace(str(project.root.parent), "/home") == snapshot


@pytest.mark.parametrize("case", ["a duplicate key", "an unclosed bracket", "a tab", "an unquoted revision"])
def test_the_parser_in_python_says_the_same(project, monkeypatch, case):
    text = RECIPE.replace(*CASES[case])
    message = str(project.error(text))
    monkeypatch.setattr(yaml_text, "LOADER", yaml.SafeLoader)
    assert yaml_text.LOADER is not yaml.CSafeLoader
    assert str(project.error(text)) == message


def checked(path):
    for loaded in load(path):
        feasibility.check(loaded)


def test_without_spoiling_it_is_fine(project):
    (project.root / "recipes" / "model").mkdir(parents=True)
    project.write("{}", "recipes/samples/few.jsonl")
    checked(project.write(RECIPE, "recipes/minilm.yaml"))
