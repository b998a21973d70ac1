"""`--set K=V` and `--only K=V`: assignments of the command line that change a recipe or select variants."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import NamedTuple

from engine.errors import RecipeError, UsageError
from engine.recipe.node import Node, plain, put
from engine.recipe.outline import is_known, suggestion
from engine.recipe.yaml_text import parse
from engine.text.places import Position, Text

SET, ONLY = "--set", "--only"
"""The options of the command line whose arguments K=V are assignments.

In an error about an argument of `--set` or `--only`, the name of the option takes the place of a file name, and the
number of the argument takes the place of a line number.
"""
_MATRIX = "a matrix is written in the recipe; `--set` gives one value: --set precision=int8"


class Assignment(NamedTuple):
    """One argument K=V: the path K, and the value V with its place in the argument."""

    path: tuple[str, ...]
    value: Node
    at: Position


def texts(option: str, given: str | Sequence[str] | Mapping[str, object]) -> tuple[str, ...]:
    """Return the arguments K=V of an option: of Python's callers, who may also give one text or a mapping of K to V.

    Raises UsageError for a mapping with a key that is no text, or a value that YAML has no word for.
    """
    if not isinstance(given, Mapping):
        return (given,) if isinstance(given, str) else tuple(given)
    return tuple(f"{key}={_written(option, key, value)}" for key, value in given.items())


def _written(option: str, key: object, value: object) -> str:
    """Return a value of Python as YAML in one line."""
    name = option.removeprefix("--")
    if not isinstance(key, str):
        raise UsageError(f"a key of `{name}` is a text, and not {key!r}", hint=f'{name}={{"precision": "fp32"}}')
    try:
        return json.dumps(value, ensure_ascii=False, default=_plain)
    except (TypeError, ValueError):
        facts = [f"{key}: {type(value).__name__}"]
        hint = "give a text, a number, a Boolean, a list, a mapping or None"
        raise UsageError(f"`{name}` has a value that no recipe can have", facts, hint) from None


def _plain(value: object) -> str:
    if isinstance(value, PurePath):
        return str(value)
    raise TypeError


def assignments(option: str, arguments: Sequence[str]) -> list[Assignment]:
    """Return one assignment for each text K=V of the option; V is YAML on one line. Raises RecipeError."""
    lines = [argument.replace("\n", " ") for argument in arguments]
    text = Text(option, "\n".join(lines))
    return [_assignment(line, Position(text, number, 1)) for number, line in enumerate(lines, 1)]


def _assignment(argument: str, at: Position) -> Assignment:
    option = at.file
    key, equals, value = argument.partition("=")
    path = tuple(key.strip().split("."))
    if not equals or not all(path):
        step = "; a step is chosen with --to STEP" if option == ONLY else ""
        raise RecipeError(f"{option} wants K=V", at, hint=f"{option} {_with_value(argument)}{step}")
    if not is_known(path):
        hint = _MATRIX if path[0] == "matrix" else suggestion(path)
        raise RecipeError(f"no recipe has a field `{key.strip()}`", at, hint=hint)
    start = at._replace(column=len(key) + 2)
    return Assignment(path, _value(value, start) if value.strip() else Node(None, start), at)


def _with_value(argument: str) -> str:
    """Return the assignment that `argument` without a sign of equality means; else an example."""
    key, _, value = argument.partition(":")
    if all(path := key.strip().split(".")) and is_known(path):
        return f"{key.strip()}={value.strip() or 'VALUE'}"
    return "target.device=T4"


def _value(value: str, at: Position) -> Node:
    """Return the value V of an argument K=V as a Node; `at` is the place at which V starts."""
    before = "\n" * (at.line - 1) + " " * (at.column - 1)
    try:
        return parse(at.text, before + value)
    except RecipeError as error:
        # The parser reports some errors at the end of its text, which lies on a line of its own.
        in_argument = error.position.line == at.line
        where = error.position if in_argument else at._replace(column=at.column + len(value))
        raise RecipeError(error.what, where, facts=error.facts, hint=error.hint) from None


def applied(root: Node, overrides: Sequence[Assignment]) -> Node:
    """Return the recipe with each value at its path; null removes the field. Raises RecipeError."""
    for override in overrides:
        try:
            root = put(root, override.path, override.value)
        except LookupError as error:
            known = "write an item that the recipe has, the first one as 0" if "no item" in error.args[0] else ""
            raise RecipeError(f"cannot set this: {error.args[0]}", override.at, hint=known) from None
    return root


def selects(root: Node, only: Sequence[Assignment]) -> bool:
    """Tell whether `only` selects a variant: for each path of `only`, the variant has one of the path's values."""
    choices: dict[tuple[str, ...], list[Node]] = {}
    for assignment in only:
        choices.setdefault(assignment.path, []).append(assignment.value)
    return all(any(same(root.find(path), value) for value in values) for path, values in choices.items())


def same(one: Node | None, other: Node | None) -> bool:
    """Tell whether two values are equal; 1 and `true` are not, and None, a missing value, equals only None."""
    if one is None or other is None or one is other:
        return one is other
    return meaning(one) == meaning(other)


def meaning(node: Node) -> str:
    """Return a value of YAML as JSON with sorted keys. Values count as equal if their JSON texts are equal."""
    return json.dumps(plain(node), sort_keys=True, default=str)
