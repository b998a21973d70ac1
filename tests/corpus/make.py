"""Writes the corpus of the present version: recipes, a lock, records, a package and --json lines as they are today."""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.recipe.schema import Recipe

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
RECIPES = {
    "child.yaml": "extends: tiny.yaml\nname: tiny-child\nbench: null\n",
    "matrix.yaml": (
        "recipe: 1\nname: net-${target.device}-${precision}\nmodel: {source: model.onnx}\n"
        "matrix: {target.device: [T4, A10], precision: [fp16, int8], "
        "exclude: [{precision: int8, target.device: A10}]}\n"
        "target: {runtime: tensorrt}\nprofiles: {batch: [1, 8, 32]}\ncalibrate: {samples: samples.jsonl}\n"
    ),
}
"""What the shipped recipes and that of every field do not show."""
FIELDS = {"name", "precision", "target", "profiles"}
"""What is kept of a recipe's meaning."""
LARGEST = 64 << 10
"""Larger files of a package are weights: they say nothing about its format."""
PLACE = "/project"
"""What stands in the corpus for the folder that it was made in."""


def main() -> None:
    """Build a tiny model in a folder of its own and keep what others read of it."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    corpus = HERE / version
    if corpus.exists():
        sys.exit(f"{corpus} is there and stays as it is: raise the version, or remove it while it is not released")
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder).resolve()
        _build(project)
        _keep(project, corpus)
    for name in sorted(path for path in corpus.rglob("*") if path.is_file()):
        print(f"{name.stat().st_size:>8}  {name.relative_to(corpus)}")


def _build(project: Path) -> None:
    sys.path.insert(0, str(HERE.parent / "support"))
    import models
    from tiny_project import RECIPE, SAMPLES

    (project / "pyproject.toml").write_text("")
    models.checkpoint(project / "model", "bert", task="text-classification")
    (project / "samples.jsonl").write_text(SAMPLES)
    (project / "tiny.yaml").write_text(RECIPE)
    lines = _recipe(project, "build", "tiny.yaml", "--json")
    lines += _recipe(project, "build", "tiny.yaml", "--json")
    (project / "build.jsonl").write_text(lines)
    (project / "show.json").write_text(_recipe(project, "show", "tiny.yaml", "--json"))
    _recipe(project, "lock", "tiny.yaml")


def _recipe(project: Path, *words: str) -> str:
    command = [sys.executable, "-m", "engine", *words]
    return subprocess.run(command, cwd=project, stdout=subprocess.PIPE, text=True, check=True).stdout


def _keep(project: Path, corpus: Path) -> None:
    recipes = corpus / "recipes"
    recipes.mkdir(parents=True)
    for path in [*sorted((ROOT / "recipes").glob("*.yaml")), HERE.parent / "recipe" / "everything.yaml"]:
        shutil.copyfile(path, recipes / path.name)
    shutil.copyfile(project / "tiny.yaml", recipes / "tiny.yaml")
    for name, text in RECIPES.items():
        (recipes / name).write_text(text)
    (corpus / "recipes.json").write_text(json.dumps(_read(recipes), indent=1, sort_keys=True) + "\n")
    shutil.copyfile(project / "tiny.lock", corpus / "tiny.lock")
    shutil.copytree(project / "cache" / "records", corpus / "records")
    for path in sorted((project / "build" / "tiny").rglob("*")):
        if path.is_file() and path.stat().st_size <= LARGEST:
            kept = corpus / "package" / path.relative_to(project / "build" / "tiny")
            kept.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, kept)
    for name in ("build.jsonl", "show.json"):
        (corpus / name).write_text((project / name).read_text().replace(str(project), PLACE))


def _read(recipes: Path) -> dict[str, object]:
    """Return what each recipe says today, by file and variant."""
    from engine.recipe.load import load

    return {
        path.name: {each.recipe.name: said(each.recipe) for each in load(path, must_exist=False)}
        for path in sorted(recipes.glob("*.yaml"))
    }


def said(recipe: Recipe) -> dict[str, Any]:
    """Return what a recipe means, the same in every release that reads it."""
    return recipe.model_dump(mode="json", by_alias=True, exclude_defaults=True, include=FIELDS)


if __name__ == "__main__":
    main()
