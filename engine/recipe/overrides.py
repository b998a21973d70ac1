"""`--set K=V` and `--only K=V`: what the command line says about a recipe."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from engine.errors import RecipeError
from engine.recipe.node import Node, plain, put
from engine.recipe.outline import is_known, suggestion
from engine.recipe.yaml_text import parse
from engine.text.places import Position, Text

SET, ONLY = "--set", "--only"
"""The names that errors call these texts by; each argument is a line of its text."""


@dataclass(frozen=True)
class Assignment:
    """One K=V: the path, and the value with its place in the argument."""

    path: tuple[str, ...]
    value: Node
    at: Position


def assignments(option: str, arguments: Sequence[str]) -> list[Assignment]:
    """Return the assignments of all arguments of `option`. Raises RecipeError.

    A value is read as YAML: a scalar, or a list or mapping in brackets.
    """
    lines = [argument.replace("\n", " ") for argument in arguments]
    text = Text(option, "\n".join(lines))
    return [_assignment(line, Position(text, number, 1)) for number, line in enumerate(lines, 1)]


def _assignment(argument: str, at: Position) -> Assignment:
    option = at.file
    key, equals, value = argument.partition("=")
    path = tuple(key.strip().split("."))
    if not equals or not all(path):
        raise RecipeError(f"{option} wants K=V", at, hint=f"{option} target.device=T4")
    if not is_known(path):
        raise RecipeError(f"no recipe has a field `{key.strip()}`", at, hint=suggestion(path))
    start = replace(at, column=len(key) + 2)
    return Assignment(path, _value(value, start) if value.strip() else Node(None, start), at)


def _value(value: str, at: Position) -> Node:
    """Return the value of an argument, which starts at `at`."""
    before = "\n" * (at.line - 1) + " " * (at.column - 1)
    try:
        return parse(at.text, before + value)
    except RecipeError as error:
        # The parser reports some errors at the end of its text, which lies on a line of its own.
        in_argument = error.position.line == at.line
        where = error.position if in_argument else replace(at, column=at.column + len(value))
        raise RecipeError(error.what, where, facts=error.facts, hint=error.hint) from None


def applied(root: Node, overrides: Sequence[Assignment]) -> Node:
    """Return the recipe with each override laid over it; `null` takes a field away. Raises RecipeError."""
    for override in overrides:
        try:
            root = put(root, override.path, override.value)
        except LookupError as error:
            raise RecipeError(f"cannot set this: {error.args[0]}", override.at) from None
    return root


def selects(root: Node, wanted: Sequence[Assignment]) -> bool:
    """Tell whether a variant has one of the wanted values for each of the wanted paths."""
    choices: dict[tuple[str, ...], list[Node]] = {}
    for assignment in wanted:
        choices.setdefault(assignment.path, []).append(assignment.value)
    return all(any(same(root.find(path), value) for value in values) for path, values in choices.items())


def same(one: Node | None, other: Node | None) -> bool:
    """Tell whether two values say the same; 1 and true are different words."""
    if one is None or other is None:
        return one is other
    return one is other or meaning(one) == meaning(other)


def meaning(node: Node) -> str:
    """Return what a value says, as text: two values that say the same have the same."""
    return json.dumps(plain(node), sort_keys=True, default=str)
