"""Digests of the code of steps, as if files of the program had been edited."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Generic, TypeVar

from engine.builder.code import closure
from engine.step import Step

ENGINE = Path(__file__).resolve().parents[2] / "engine"
Name = TypeVar("Name")


class EditedCode(Generic[Name]):
    """A copy of the program's code, from whose files the digests of the code of some steps are computed."""

    def __init__(self, folder: Path, steps: Mapping[Name, Step]) -> None:
        self.folder = folder / "engine"
        self._steps = steps
        self._modules: dict[str, closure.Module] = {}
        shutil.copytree(ENGINE, self.folder, ignore=shutil.ignore_patterns("__pycache__"))
        self.codes = self._codes({}, afresh=False)
        """The code of each step without edits."""

    def text(self, file: str) -> str:
        """Return the text of a file below `engine/`, without edits."""
        return (ENGINE / file).read_text("utf-8")

    def covering(self, file: str) -> set[Name]:
        """Return the steps whose code has a file below `engine/`."""
        return {name for name, code in self.codes.items() if self.folder / file in code.before}

    def rekeyed(self, texts: Mapping[str, str], *, afresh: bool = True) -> set[Name]:
        """Return the steps whose digest is another one with other texts of some files below `engine/`.

        Without `afresh`, modules that have none of these files are not read again.
        """
        paths = {self.folder / file: text for file, text in texts.items()}
        before = {path: path.read_bytes() for path in paths}
        try:
            for path, text in paths.items():
                path.write_bytes(text.encode("utf-8"))
            codes = self._codes(paths, afresh=afresh)
        finally:
            for path, content in before.items():
                path.write_bytes(content)
        return {name for name, code in codes.items() if code.digest != self.codes[name].digest}

    def _codes(self, paths: Collection[Path], *, afresh: bool) -> dict[Name, closure.Code]:
        with self._read_here(None if afresh else paths):
            return {name: closure.of_step(step) for name, step in self._steps.items()}

    @contextmanager
    def _read_here(self, paths: Collection[Path] | None) -> Iterator[None]:
        """Context manager: modules are read from the copy, and those without one of `paths` only once.

        None for `paths` stands for all files.
        """
        file_of, read = closure.file_of, closure._read

        def file_here(module: str) -> Path | None:
            path = file_of(module)
            return self.folder / path.relative_to(ENGINE) if path is not None and path.is_relative_to(ENGINE) else path

        @cache
        def read_once(name: str) -> closure.Module:
            module = self._modules.get(name)
            if module is None or not module.before.keys().isdisjoint(paths):
                module = read.__wrapped__(name)
                if module.before.keys().isdisjoint(paths):
                    self._modules[name] = module
            return module

        closure.file_of = file_here
        if paths is None:
            closure.forget()
        else:
            closure._read = read_once
        closure.of.cache_clear()
        closure._target.cache_clear()
        try:
            yield
        finally:
            closure.file_of, closure._read = file_of, read
            closure.forget()
