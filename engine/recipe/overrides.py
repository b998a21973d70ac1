"""`--set K=V` and `--only K=V`: what the command line says about a recipe."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from engine.errors import Position, RecipeError
from engine.recipe.node import Node, plain, put
from engine.recipe.outline import is_known, suggestion
from engine.recipe.text import Text, Texts, error_in
from engine.recipe.yaml_text import parse

SET, ONLY = "--set", "--only"
"""The names that errors call these texts by; each argument is a line of its text."""


@dataclass(frozen=True)
class Assignment:
    """One K=V: the path, and the value with its place in the argument."""

    path: tuple[str, ...]
    value: Node
    at: Position


def assignments(option: str, arguments: Sequence[str], texts: dict[str, Text]) -> list[Assignment]:
    """Return what the arguments of `option` say, their text added to `texts`. Raises RecipeError.

    A value is read as YAML: a scalar, or a list or mapping in brackets.
    """
    if not arguments:
        return []
    texts[option] = Text(option, "\n".join(argument.replace("\n", " ") for argument in arguments))
    return [_assignment(option, line, argument, texts) for line, argument in enumerate(arguments, 1)]


def _assignment(option: str, line: int, argument: str, texts: dict[str, Text]) -> Assignment:
    at = Position(option, line, 1)
    key, equals, value = argument.replace("\n", " ").partition("=")
    path = tuple(key.strip().split("."))
    if not equals or not all(path):
        raise error_in(texts, f"{option} wants K=V", at, hint=f"{option} target.device=T4")
    if not is_known(path):
        raise error_in(texts, f"no recipe has a field `{key.strip()}`", at, hint=suggestion(path))
    if not value.strip():
        return Assignment(path, Node(None, Position(option, line, len(key) + 2)), at)
    return Assignment(path, _value(option, line, argument, len(key) + 1, texts), at)


def _value(option: str, line: int, argument: str, start: int, texts: Texts) -> Node:
    """Return the value of an argument, read where it stands so that its places are the argument's."""
    lead = "\n" * (line - 1) + " " * start
    try:
        return parse(Text(option, lead + argument[start:].replace("\n", " ")))
    except RecipeError as error:
        where = error.position
        if where is None or where.line != line:  # what the parser reports at the end of its text
            where = Position(option, line, len(argument) + 1)
        raise error_in(texts, error.what, where, facts=error.facts, hint=error.hint) from None


def applied(root: Node, overrides: Sequence[Assignment], texts: Texts) -> Node:
    """Return the recipe with each override laid over it; `null` takes a field away. Raises RecipeError."""
    for override in overrides:
        try:
            root = put(root, override.path, override.value)
        except LookupError as error:
            raise error_in(texts, f"cannot set this: {error.args[0]}", override.at) from None
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
