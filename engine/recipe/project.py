"""Which project a recipe belongs to; imports next to nothing, for the no-op path."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

_MARKS = (".git", "pyproject.toml", os.path.join("cache", "format"))
"""What only the root of a project holds; the last is the store of an earlier build."""


def project_of(path: Path) -> Path:
    """Return the root of the project that the recipe file `path` belongs to, absolute, symbolic links resolved.

    It is the nearest folder above the file that holds `.git`, `pyproject.toml` or a store called `cache`; without
    any, the recipe's own folder, or its parent where that folder is called `recipes`.
    """
    return type(path)(_root_of(str(path)))


def cache_of(recipe: str) -> str:
    """Return the folder of the default store of a recipe's project."""
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
