"""Place: where a new recipe and its samples go; no file that exists is changed."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path

from engine.drafts.draft import SCHEMA, Draft, recipe_text
from engine.errors import UsageError
from engine.recipe import project
from engine.system import folders

_UNFIT = re.compile(r"[^A-Za-z0-9_.-]+")
_ROOT = "# This folder is a project of recipe: the recipes in it may name everything in it.\n"
_FOLDER, _SAMPLES = "recipes", "samples"


def name_of(text: str) -> str:
    """Return a text as the name of a recipe: letters, digits and `.`, `_`, `-`; the first is a letter or a digit."""
    return _UNFIT.sub("-", text).strip("-._")[:100] or "model"


def recipe_file(name: str, chosen: Path | None) -> Path:
    """Return the path of a new recipe: the chosen one, or a file in `recipes/` where that folder is here."""
    if chosen is not None:
        return chosen if chosen.suffix in {".yaml", ".yml"} else chosen.with_name(f"{chosen.name}.yaml")
    return Path(_FOLDER, f"{name}.yaml") if Path(_FOLDER).is_dir() else Path(f"{name}.yaml")


def refuse_existing(recipe: Path) -> None:
    """Raise UsageError where a new recipe would replace a file, or where nothing can be written."""
    if os.path.lexists(recipe):
        raise UsageError(f"{recipe} exists: it is left as it is", hint="name another file: -o FILE")
    folders.refuse_unwritable(recipe.parent, f"{recipe} cannot be written", "name another file: -o FILE")


def samples_file(recipe: Path, suffix: str) -> str:
    """Return the name of a new recipe's samples, relative to the recipe's folder; no file has the name yet."""
    for number in range(1, 1000):
        name = f"{_SAMPLES}/{recipe.stem}{'' if number == 1 else f'-{number}'}{suffix}"
        if not os.path.lexists(recipe.parent / name):
            return name
    raise UsageError(f"{recipe.parent / _SAMPLES} has a thousand files for {recipe.stem}", hint="-o FILE")


def write(draft: Draft, recipe: Path, model: Path | None) -> list[Path]:
    """Write a draft, its samples and the schema for editors, and return the new files.

    Where nothing says what the project is, and the folder of the recipe has no `model`, a file `recipe.toml` makes the
    working folder the project, if it contains both. Raises UsageError where the recipe exists or a file cannot
    be written.
    """
    from engine.builder.recipe_schema import recipe_schema

    files = {recipe: recipe_text(draft).encode()}
    if draft.samples is not None:
        files |= {recipe.parent / name: content for name, content in draft.samples.files().items()}
    schema = recipe.parent / SCHEMA
    if not os.path.lexists(schema):
        files[schema] = (json.dumps(recipe_schema(), indent=1) + "\n").encode()
    here = Path.cwd()
    if outside(recipe, model) and model is not None and _could_be_root(here, recipe, model):
        files[Path(project.SETTINGS)] = _ROOT.encode()
    refuse_existing(recipe)
    written: list[Path] = []
    try:
        for path, content in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("xb") as file:  # another program may have written it since
                written.append(path)
                file.write(content)
    except OSError as error:
        take_back(written)
        raise UsageError(f"{path} cannot be written: {error.strerror}", hint="name another file: -o FILE") from None
    return written


def outside(recipe: Path, model: Path | None) -> bool:
    """Whether a model lies outside the project of a recipe; a model that is no local path does not."""
    return model is not None and not Path(os.path.realpath(model)).is_relative_to(project.project_of(recipe))


def _could_be_root(here: Path, recipe: Path, model: Path) -> bool:
    contained = all(Path(os.path.realpath(path)).is_relative_to(here) for path in (recipe, model))
    return contained and not project.is_marked(str(project.project_of(recipe)))


def take_back(files: Sequence[Path]) -> None:
    """Remove new files, and the folders of samples if they are empty then."""
    for path in files:
        path.unlink(missing_ok=True)
        for folder in (path.parent, path.parent.parent):
            with contextlib.suppress(OSError):  # the folder has other files
                if _SAMPLES in (folder.name, folder.parent.name):
                    folder.rmdir()
