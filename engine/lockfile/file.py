"""The file of a recipe's lock: find its path, read it, and replace it in one step."""

from __future__ import annotations

import os
from pathlib import Path

from engine.errors import LockError, UsageError
from engine.lockfile.content import Lock
from engine.lockfile.text import dump, parse
from engine.recipe.recipe_file import not_utf8
from engine.store.disk import replace
from engine.system import regular
from engine.text.places import Text

_SUFFIX = ".lock"
_RECIPES = (".yaml", ".yml")


def path_of(recipe: Path) -> Path:
    """Return the path of a recipe's lock, beside the recipe.

    Raises UsageError if two recipes would have the same lock file.
    """
    path = recipe.with_suffix(_SUFFIX)
    if path == recipe:
        raise UsageError(f"{recipe} is called like a lock", hint="call the recipe NAME.yaml")
    others = [recipe.with_suffix(suffix) for suffix in _RECIPES]
    twins = [twin for twin in others if twin != recipe and twin.exists()]
    if twins:
        raise UsageError(f"{recipe} and {twins[0]} would share the lock {path}", hint="rename one of them")
    return path


def find(path: Path) -> Lock | None:
    """Return the lock at `path`; None if there is no file. Raises RecipeError, with a position, for a broken lock."""
    try:
        data = regular.read(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise LockError(f"{path} cannot be read: {error.strerror}") from None
    try:
        content = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise not_utf8(data, str(path), error, kind="lock", hint="write it anew: `recipe lock`") from None
    return parse(Text(str(path), content))


def read(path: Path, recipe: Path) -> Lock:
    """Return the lock at `path`. Raises LockError for a missing file, RecipeError for a broken lock."""
    lock = find(path)
    if lock is None:
        raise LockError(f"{recipe} has no lock: there is no {path}", hint=f"`recipe lock {recipe}` writes it")
    return lock


def write(path: Path, lock: Lock) -> bool:
    """Write a lock, unless the file already has the same content; return whether a file was written.

    Raises LockError.
    """
    data = dump(lock).encode()
    try:
        if path.exists() and regular.read(path) == data:
            return False
        place = path.resolve()  # a link stays a link
        replace(place, data, fresh=place.with_name(f".{place.name}.{os.urandom(8).hex()}"), flushed=True)
    except OSError as error:
        raise LockError(f"{path} cannot be written: {error.strerror}") from error
    return True
