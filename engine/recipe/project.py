"""The project of a recipe: the root folder and its store. No-op builds import this module, so it must import little."""

from __future__ import annotations

import os

from engine.system import regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

SETTINGS = "recipe.toml"
_MARKS = (".git", "pyproject.toml", SETTINGS)
"""Files and folders that mark the root of a project. A store called `cache` is the fourth mark."""
_STAMP_BYTES = 200
"""The largest size of a store's file `format`, which is less than 100 bytes in all versions of the store."""


def project_of(path: Path) -> Path:
    """Return the root of the project of the recipe file `path`: an absolute path without symbolic links.

    The root of the project is the nearest folder above the recipe file that contains `.git`, `pyproject.toml`,
    `recipe.toml` or a store called `cache`. A folder `cache` that is no store marks nothing. If no folder above the
    recipe file has a mark, the root is the folder of the recipe file, or the parent of that folder if the folder is
    called `recipes`.
    """
    return type(path)(root_of(str(path)))


def cache_of(recipe: str) -> str:
    """Return the default store of a recipe's project, by its `recipe.toml` or called `cache`. Raises UserError."""
    root = root_of(recipe)
    try:
        mentions = b"cache" in regular.read(os.path.join(root, "recipe.toml"))
    except OSError:
        mentions = False
    stated = None
    if mentions:  # reading TOML takes a tenth of the time of a no-op build
        from engine.recipe import settings_file

        stated = settings_file.of_project(root).get("cache")
    return stated or os.path.join(root, "cache")


def store_of(cache: Path | None, recipe: Path) -> Path:
    """Return the store's folder: the argument `cache`, RECIPE_CACHE, that of `recipe.toml`, or the folder `cache`."""
    from pathlib import Path

    return cache or Path(os.environ.get("RECIPE_CACHE") or cache_of(str(recipe)))


def jobs_of(recipe: str) -> int | None:
    """Return how many jobs run at once by the `recipe.toml` of a recipe's project, if it says so. Raises UserError."""
    root = root_of(recipe)
    if not os.path.lexists(os.path.join(root, "recipe.toml")):
        return None
    from engine.recipe import settings_file

    return settings_file.of_project(root).get("jobs")


def root_of(recipe: str) -> str:
    """Return the root of the project of a recipe file, as `project_of` does, without `pathlib`."""
    start = folder = os.path.realpath(os.path.dirname(recipe) or ".")
    while True:
        if is_marked(folder):
            return folder
        parent = os.path.dirname(folder)
        if parent == folder:
            return os.path.dirname(start) if os.path.basename(start) == "recipes" else start
        folder = parent


def is_marked(folder: str) -> bool:
    """Say whether a folder has a mark of the root of a project."""
    return any(os.path.lexists(os.path.join(folder, mark)) for mark in _MARKS) or _has_store(folder)


def _has_store(folder: str) -> bool:
    """Tell whether a folder has a store called `cache`, whose `format` has the usual form; it may be damaged."""
    try:
        with regular.open_file(os.path.join(folder, "cache", "format")) as file:
            stamp = file.read(_STAMP_BYTES).strip()
    except OSError:
        return False
    # The first version of the store wrote the number without a seal.
    return stamp.isdigit() or (stamp.startswith(b'{"seal": "') and b'"format": ' in stamp)
