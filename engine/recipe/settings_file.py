"""Files of settings in TOML: a project's `recipe.toml` and a user's `config.toml`. An unknown setting is an error."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from typing import Any

from engine.errors import RecipeError, UsageError
from engine.system import regular
from engine.text import suggestions
from engine.text.places import Position, Text

Kinds = Mapping[str, Any]
"""The settings of a file: the type of each value; for a table, again a mapping."""
PROJECT: Kinds = {"cache": str, "jobs": int, "remote": {"url": str}}
"""The settings of `recipe.toml`, which are defaults of its project."""
NUMBER = int | float
_IN_WORDS: Mapping[Any, str] = {
    str: "a text in quotes",
    int: "a whole number of 1 or more",
    bool: "true or false",
    list: "a list of texts",
    NUMBER: "a number",
}


def of_project(root: str) -> dict[str, Any]:
    """Return the settings of a project's `recipe.toml`; {} without one. Raises RecipeError.

    `cache` is an absolute path: in the file it starts at the folder of the project.
    """
    settings = read(os.path.join(root, "recipe.toml"), PROJECT)
    if "cache" in settings:
        settings["cache"] = os.path.join(root, os.path.expanduser(settings["cache"]))
    return settings


def read(path: str, kinds: Kinds) -> dict[str, Any]:
    """Return the settings of a file; {} for a missing file.

    A text in place of a table with a `url` is its `url`. Raises RecipeError for wrong TOML, an unknown setting or a
    value of another type, and UsageError for an unreadable file.
    """
    try:
        text = regular.read(path).decode()
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise UsageError(f"the settings cannot be read: {path}", [str(error)]) from None
    own = os.path.relpath(path)
    stated = Text(path if own.startswith(os.pardir) else own, text)
    try:
        settings = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        what, _, place = str(error).partition(" (at ")
        numbers = [int(number) for number in re.findall(r"\d+", place)]
        position = Position(stated, *numbers) if numbers else stated.position(len(text))
        raise RecipeError(f"this is no TOML: {what}", position, hint='a setting is written `cache = "DIR"`') from None
    return _checked(settings, kinds, stated)


def _checked(settings: dict[str, Any], kinds: Kinds, text: Text, table: str = "") -> dict[str, Any]:
    """Return the settings of a file, or of a table in it; `table` is the table's name with a dot."""
    for name, value in settings.items():
        full, kind = f"{table}{name}", kinds.get(name)
        inner = {"url": value} if isinstance(kind, Mapping) and "url" in kind and isinstance(value, str) else value
        if isinstance(kind, Mapping) and isinstance(inner, dict):
            settings[name] = _checked(inner, kind, text, f"{full}.")
        elif not _is_right(value, kind):
            place = re.search(rf"^[ \t\[]*(?:[\w-]+\.)*[\"']?({re.escape(name)})\b", text.content, re.MULTILINE)
            what, hint = _fault(full, value, kind, kinds)
            raise RecipeError(what, text.position(place.start(1) if place else 0), hint=hint)
    return settings


def _is_right(value: object, kind: Any) -> bool:
    if kind is None or isinstance(kind, Mapping) or isinstance(value, bool) != (kind is bool):
        return False
    return isinstance(value, kind) and not (isinstance(value, int) and kind is int and value < 1)


def _fault(full: str, value: object, kind: Any, known: Kinds) -> tuple[str, str]:
    """Return the message and the hint for a setting that is unknown or has a value of another type."""
    from engine.text.display import described  # a no-op build reads a right file, and waits for no further import

    if kind is None:
        return f"`{full}` is no setting", suggestions.hint(full.rpartition(".")[2], known)
    value_meant = f"a table, [{full}]" if isinstance(kind, Mapping) else _IN_WORDS[kind]
    return f"`{full}` is {described(value)}", f"write {value_meant}"
