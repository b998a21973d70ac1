"""Near files: the files that the name of a missing file may mean, for the hints of errors."""

from __future__ import annotations

import os
import re
from pathlib import Path

from engine.text import lists, suggestions
from engine.text.display import shown, shown_path

_MOST_NAMES = 10_000
"""The largest number of file names in a folder that are compared with the name of a missing file."""
_MOST_FOLDERS = 100
"""The largest number of folders that are searched for a file of the same name."""
_LISTED = 5
"""The largest number of recipes that a hint lists."""
_ALIKE = 0.5
"""The least similarity of a name that a hint offers, from 0 to 1: long file names often differ in a whole word."""
_RECIPES = (".yaml", ".yml")
_VARIABLE = r"\$\{?\w+\}?"
_URL = r"(\w+):/.+"


def of_recipe(path: Path) -> str:
    """Return the hint for a missing recipe: similar names, the file of that name near by, or the recipes here."""
    if url := re.fullmatch(_URL, str(path)):
        remote = "; a remote is named by RECIPE_REMOTE" if url[1] in ("s3", "gs", "az") else ""
        return f"a recipe is a file: download it, and name the file{remote}"
    if str(path).startswith("hf:"):
        return f"write a recipe for the model first: recipe new {shown_path(path)}"
    names = _names(path.parent)
    near = _near(path, names)
    if near and Path(near[0]).stem == path.stem:
        return suggestions.did_you_mean(shown(near[0]))
    if elsewhere := _elsewhere(path):
        return suggestions.did_you_mean(shown_path(elsewhere))
    if near or not (here := recipes()):
        return hint(path)
    return f"{hint(path)}; recipes here: {lists.first_of(here, _LISTED)}"


def of_source(source: str, path: Path) -> str:
    """Return the hint for a file that a recipe names as `source`, and that is missing at `path`."""
    if variable := re.search(_VARIABLE, source):
        return f"{shown(variable[0])} stays as it is: variables of the shell have no value in a recipe; write the path"
    if not os.path.isabs(source) and _exists(Path(source)):
        there = os.path.relpath(source, _folder(source, path))
        return f"paths start at the recipe's folder: write {shown_path(Path(there))}"
    return hint(path)


def hint(path: Path) -> str:
    """Return the hint for a missing file: similar names in the same folder, or the missing folder."""
    names = _names(path.parent)
    if names is None:
        if other := instead(path):
            return suggestions.did_you_mean(shown_path(other))
        missing = next((parent for parent in path.parent.parents if parent.is_dir()), path.parent)
        return f"there is no folder {shown_path(path.parent)}; {shown_path(missing)} exists"
    near = _near(path, names)
    folder = "this folder" if path.parent == Path() else shown_path(path.parent)
    return suggestions.did_you_mean(*map(shown, near)) if near else f"{folder} holds no name like it"


def instead(path: Path) -> Path | None:
    """Return the path that exists where one part of a missing path is written otherwise; None where there is none."""
    real = next((parent for parent in path.parents if parent.is_dir()), Path())
    first, *rest = path.parts[len(real.parts) :]
    near = suggestions.nearest(first, _names(real) or ())
    other = Path(real, *near, *rest)
    return other if near and _exists(other) else None


def in_folder(path: Path) -> str:
    """Return the hint for a folder in place of a recipe: the recipes in it, or how a model gets one; else ""."""
    own = _recipes_of(path) if path.is_dir() else []
    if not own and (path / "config.json").is_file():
        return f"write a recipe for the model first: recipe new {path}"
    return f"name the recipe: {lists.first_of(own, _LISTED)}" if own else ""


def recipes() -> list[str]:
    """Return the YAML files of this folder and of its folder `recipes`."""
    return [*_recipes_of(Path()), *_recipes_of(Path("recipes"))]


def _recipes_of(folder: Path) -> list[str]:
    names = sorted(_names(folder) or ())
    return [shown_path(folder / name) for name in names if name.endswith(_RECIPES) and not name.startswith(".")]


def _names(folder: Path) -> list[str] | None:
    """Return the names in a folder; None for a folder that cannot be read."""
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry, _ in zip(entries, range(_MOST_NAMES), strict=False)]
    except (OSError, ValueError):
        return None


def _near(path: Path, names: list[str] | None) -> list[str]:
    return suggestions.nearest(path.name, names or (), count=3, least=_ALIKE)


def _folder(source: str, path: Path) -> Path:
    """Return the folder to which `source`, whose place is `path`, is relative."""
    return Path(*path.parts[: len(path.parts) - len(Path(source).parts)])


def _elsewhere(path: Path) -> Path | None:
    """Return the file of that name in this folder, in a folder of it, or one folder up; None where there is none."""
    if path.is_absolute() or not path.name:
        return None
    inside = [Path(name) for name in sorted(_names(Path()) or ())[:_MOST_FOLDERS] if not name.startswith(".")]
    names = [path.name] if path.suffix else [f"{path.name}{end}" for end in _RECIPES]
    candidates = (folder / name for folder in (Path(), *inside, Path("..")) for name in names)
    return next((each for each in candidates if each != path and _exists(each)), None)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False
