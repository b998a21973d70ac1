"""What the tests around a tiny model share: its recipe, its samples, and the jobs that they become."""

import json
from pathlib import Path

import models
import once
from program import Program

CHAIN = ("fetch", "export", "reference", "shape-infer", "fuse", "quantize", "validate", "bench", "package")
RECIPE = """\
name: tiny
model: {source: model}
precision: int8
profiles:
  - {batch: [1, 1, 4], sequence: [1, 16, 32]}
validate:
  samples: samples.jsonl
  cosine: {at_least: 0.5}
  agreement: {at_least: 0.1}
  max_abs: {at_most: 100}
bench:
  shapes: [{batch: 1, sequence: 8}]
  against: [{runtime: onnxruntime}]
"""
SAMPLES = "".join(json.dumps({"text": text}) + "\n" for text in ("a good film", "the plot was bad", "where is it?"))
OF_ONNX = "model: {source: model/model.onnx, tokenizer: model, task: text-classification}\n"
"""The model of a recipe as an ONNX file, which `models.classifier_with_tokenizer` writes: nothing waits for PyTorch."""
HEAVY = {
    "torch",
    "transformers",
    "onnx",
    "onnxruntime",
    "numpy",
    "pydantic",
    "networkx",
    "yaml",
    "rich",
    "huggingface_hub",
}
"""What an up-to-date build must not import."""
MARK = '''"""Marks the model."""

import shutil
from pathlib import Path
from typing import ClassVar, Self

from engine.recipe.schema import Recipe
from engine.step import Step


class Mark(Step):
    """Marks the model."""

    makes: ClassVar[str] = "marked"
    after: ClassVar[str] = "shape-infer"

    @classmethod
    def for_recipe(cls, _recipe: Recipe) -> Self:
        return cls()

    def run(self, out: Path, *, model: Path) -> None:
        shutil.copytree(model, out, dirs_exist_ok=True)
'''
"""A step that slots in, as a file of `engine/steps` or a module of another package."""


def built() -> Path:
    """Return a project with this recipe that was built once in this run of the tests: copy it."""
    return once.made("tiny-built", _build)


def _build(folder: Path) -> None:
    (folder / "pyproject.toml").write_text("")
    models.checkpoint(folder / "model", "bert", task="text-classification")
    (folder / "samples.jsonl").write_text(SAMPLES)
    (folder / "r.yaml").write_text(RECIPE)
    states = Program(folder).states("r.yaml")
    assert states == dict.fromkeys(CHAIN, "built"), states
