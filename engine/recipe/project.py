"""The project of a recipe: the root folder and its store. No-op builds import this module, so it must import little."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

_MARKS = (".git", "pyproject.toml", os.path.join("cache", "format"))
"""Files and folders that mark the root of a project. The file `cache/format` shows that `cache` is a store."""


def project_of(path: Path) -> Path:
    """Return the root of the project of the recipe file `path`: an absolute path without symbolic links.

    The root of the project is the nearest folder above the recipe file that contains `.git`, `pyproject.toml` or a
    store called `cache`. If no folder above the recipe file contains `.git`, `pyproject.toml` or a store, the root is
    the folder of the recipe file, or the parent of that folder if the folder is called `recipes`.
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
