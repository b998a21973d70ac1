"""Digests of the code of the program's own steps, as if files of the program had been edited."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from engine.builder import registry
from engine.builder.code import digests as code
from engine.builder.code import modules
from engine.recipe.load import load
from engine.step import Step

ROOT = Path(__file__).parent.parent.parent
ENGINE = ROOT / "engine"

Edit = tuple[str, str, str]
"""A file below `engine/` without `.py`, an old text and the new text."""


def steps(*recipes: str) -> dict[str, Step]:
    """Return the steps of the first variants of recipes, by name; the first recipe that uses a step decides."""
    chosen: dict[str, Step] = {}
    for recipe in recipes:
        loaded = load(ROOT / "recipes" / recipe)[0]
        for kind in registry.steps().values():
            step = kind.for_recipe(loaded.recipe)
            if step is not None:
                chosen.setdefault(kind.step_name(), step)
    return chosen


class EditedCode:
    """A copy of the program's code, whose files the digests are computed from."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "engine"
        shutil.copytree(ENGINE, self.folder, ignore=shutil.ignore_patterns("__pycache__"))

    def digest(self, step: Step, *edits: Edit) -> str:
        """Return the digest of a step's code after some edits, which are undone afterwards."""
        with self._edited(edits), self.read_here():
            return code.of_step(step).digest

    def digest_with(self, step: Step, texts: Mapping[str, str]) -> str:
        """Return the digest of a step's code with other texts of some modules, by the modules' names."""
        paths = {self.path(module): text for module, text in texts.items()}
        before = {path: path.read_text("utf-8") for path in paths}
        try:
            for path, text in paths.items():
                path.write_text(text, "utf-8")
            with self.read_here():
                return code.of_step(step).digest
        finally:
            for path, text in before.items():
                path.write_text(text, "utf-8")

    def path(self, module: str) -> Path:
        """Return the copy of a module's file."""
        original = modules.file_of(module)
        assert original is not None
        return original if original.is_relative_to(self.folder) else self.folder / original.relative_to(ENGINE)

    @contextmanager
    def _edited(self, edits: Iterable[Edit]) -> Iterator[None]:
        before: dict[Path, str] = {}
        for file, old, new in edits:
            path = self.folder / f"{file}.py"
            text = path.read_text("utf-8")
            assert old in text, f"{file} has no {old!r}"
            before.setdefault(path, text)
            path.write_text(text.replace(old, new, 1), "utf-8")
        try:
            yield
        finally:
            for path, text in before.items():
                path.write_text(text, "utf-8")

    @contextmanager
    def read_here(self) -> Iterator[None]:
        """Context manager: digests are computed from the copy."""
        original = modules.file_of

        def file_of(module: str) -> Path | None:
            path = original(module)
            inside = path is not None and path.is_relative_to(ENGINE)
            return self.folder / path.relative_to(ENGINE) if path is not None and inside else path

        code.forget()
        modules.file_of = file_of
        try:
            yield
        finally:
            modules.file_of = original
            code.forget()
