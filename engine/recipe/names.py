"""The names of variants: `minilm-${target.device}-${precision}`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from engine.errors import RecipeError
from engine.recipe.node import Node, plain, put
from engine.recipe.outline import suggestion

_PLACE = re.compile(r"\$\{([^{}]*)\}")
_MAX_SLUG = 48


def label(combination: Mapping[str, Node]) -> str:
    """Return a variant's values in the matrix's order: `target.device=T4,precision=fp16`."""
    return ",".join(f"{path}={written(plain(value))}" for path, value in combination.items())


def written(value: Any) -> str:
    """Return a value on one line, as YAML would write it in brackets."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {written(below)}" for key, below in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(written(item) for item in value) + "]"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)


def named(root: Node, combination: Mapping[str, Node], places: Mapping[str, int]) -> Node:
    """Return a variant with its name filled in; a name without places gets the values appended.

    `places` says which value of its axis each is, for values too long for a name. Raises RecipeError.
    """
    node = root.find(["name"])
    if node is None or not isinstance(node.value, str):
        return root  # for the schema to complain of
    template = node.value
    if "${" not in template and "name" not in combination:
        template += "".join(f"-${{{path}}}" for path in combination)

    def filled(match: re.Match[str]) -> str:
        path = match[1].strip().split(".")
        value = combination.get(match[1].strip()) or root.find(path)
        if value is None:
            what = f"`name` asks for ${{{match[1]}}}, which this recipe does not say"
            raise RecipeError(what, node.at, hint=suggestion(path))
        slug = _slug(written(plain(value)))
        return slug if len(slug) <= _MAX_SLUG else f"{path[-1]}{places.get(match[1].strip(), 1)}"

    name = _PLACE.sub(filled, template)
    return put(root, ["name"], Node(name, node.at, written=name))


def _slug(text: str) -> str:
    """Return a text fit for a file's name: anything but letters, digits, `.` and `_` becomes one dash."""
    return re.sub(r"[^A-Za-z0-9._]+", "-", text).strip("-")
