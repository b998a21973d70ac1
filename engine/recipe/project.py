"""The project of a recipe: the root folder and its store. Up-to-date builds import this file, so it imports little."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

_MARKS = (".git", "pyproject.toml", os.path.join("cache", "format"))
"""Files and folders that mark the root of a project. `cache/format` is the mark of a store."""


def project_of(path: Path) -> Path:
    """Return the root of the project of the recipe file `path`: an absolute path without symbolic links.

    The root is the nearest folder above the file with `.git`, `pyproject.toml` or a store called `cache`. Without such
    a folder the root is the recipe's own folder, or the parent of a folder called `recipes`.
    """
    return type(path)(_root_of(str(path)))


def cache_of(recipe: str) -> str:
    """Return the folder `cache` of a recipe's project, which is the default store."""
    return os.path.join(_root_of(recipe), "cache")


def _root_of(recipe: str) -> str:
    start = folder = os.path.realpath(os.path.dirname(recipe) or ".")
    while True:
        if any(os.path.lexists(os.path.join(folder, mark)) for mark in _MARKS):
            return folder
        parent = os.path.dirname(folder)
        if parent == folder:
            return os.path.dirname(start) if os.path.basename(start) == "recipes" else start
        folder = parent
