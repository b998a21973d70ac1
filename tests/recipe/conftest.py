"""A small project, into which the tests write recipes."""

import os
from pathlib import Path

import pytest

from engine.errors import RecipeError
from engine.recipe.load import LoadedRecipe, load

MINIMAL = "name: tiny\nmodel: {source: model}\n"


class Project:
    """A folder with a model, samples, and the recipes that a test writes."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "pyproject.toml").touch()
        (root / "model").mkdir()
        (root / "model" / "config.json").write_text("{}")
        (root / "samples").mkdir()
        (root / "samples" / "few.jsonl").write_text('{"text": "one"}\n')
        (root / "samples" / "train.jsonl").write_text('{"text": "two"}\n')

    def write(self, text: str | bytes, name: str = "recipe.yaml") -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path.relative_to(Path.cwd())

    def load(self, text: str | bytes = MINIMAL, **options) -> tuple[LoadedRecipe, ...]:
        return load(self.write(text), **options)

    def one(self, text: str = MINIMAL, **options) -> LoadedRecipe:
        (loaded,) = self.load(text, **options)
        return loaded

    def error(self, text: str | bytes, **options) -> RecipeError:
        with pytest.raises(RecipeError) as caught:
            self.load(text, **options)
        return caught.value


@pytest.fixture
def project(tmp_path, monkeypatch) -> Project:
    root = tmp_path / "project"
    root.mkdir()
    monkeypatch.chdir(root)
    return Project(Path(os.path.realpath(root)))
