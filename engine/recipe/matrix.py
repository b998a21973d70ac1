"""`matrix`: the combinations of values that one recipe stands for, with `include` and `exclude`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import prod

from engine.errors import RecipeError
from engine.recipe.complaints import description
from engine.recipe.node import Node
from engine.recipe.outline import is_known, suggestion
from engine.recipe.overrides import Assignment, meaning, same
from engine.recipe.text import shown
from engine.text.places import Position

MAX_VARIANTS = 100_000
"""The largest number of combinations that a matrix may have before `exclude` removes some of them.

A matrix with more combinations is refused before the combinations are listed.
"""
MAX_RULES = 256
"""Upper limit of the number of entries in `include` or `exclude`: each entry is compared with each combination."""

Combination = dict[str, Node]
"""A mapping from the dotted path of a field, such as `target.device`, to its value, in the order of the matrix."""


def combinations(matrix: Node, pinned: Sequence[Assignment]) -> list[Combination]:
    """Return one combination of values for each variant. Raises RecipeError.

    The rules of `include` and `exclude` are those of GitHub Actions. `exclude` removes each combination that has all
    values of one of its entries. An entry of `include` is added to every remaining combination in which the entry
    changes no value of an axis; an entry that is added to no combination is a variant of its own. If an assignment of
    `pinned` (from the option `--set`) has the path of an axis, the assignment replaces all values of the axis.
    """
    if not matrix.mapping:
        what = f"`matrix` is {description(matrix)}; lists of values by path are meant"
        raise RecipeError(what, matrix.at, hint="matrix: {target.device: [T4, L4], precision: [fp32, fp16]}")
    axes = {path: _values(path, matrix) for path in matrix.mapping if path not in ("include", "exclude")}
    for assignment in pinned:
        path = ".".join(assignment.path)
        if path in axes:
            axes[path] = [assignment.value]
    included, excluded = _rules("include", matrix), _rules("exclude", matrix)
    _check_count(prod(len(values) for values in axes.values()) + len(included), matrix.at)
    for rule in excluded:
        _check_axes(rule, axes)
    every = [dict(zip(axes, values, strict=True)) for values in product(*axes.values())] if axes else []
    remaining = [one for one in every if not any(_has(one, rule.mapping or {}) for rule in excluded)]
    result = _with_included(remaining, included)
    if not result:
        raise RecipeError("`exclude` leaves no variant", matrix.keys["exclude"], hint="leave one of its entries out")
    return result


def _with_included(combined: Sequence[Combination], included: Sequence[Node]) -> list[Combination]:
    result = [dict(one) for one in combined]
    alone: list[Combination] = []
    for rule in included:
        entry = rule.mapping or {}
        # Only values of axes must agree: a field that another entry of `include` added may be replaced.
        on_axes = [{path: value for path, value in entry.items() if path in one} for one in combined]
        matches = [index for index, one in enumerate(combined) if _has(one, on_axes[index])]
        for index in matches:
            result[index] |= entry
        if not matches:
            alone.append(dict(entry))
    return result + alone


def _has(combination: Combination, entry: Mapping[str, Node]) -> bool:
    return all(same(combination.get(path), value) for path, value in entry.items())


def _listed(node: Node | None) -> str:
    """Return the values that a text such as `fp16, int8` means; an example where the value is no text."""
    return shown(node.value) if node is not None and isinstance(node.value, str) else "VALUE, VALUE"


def _values(path: str, matrix: Node) -> Sequence[Node]:
    """Return the values of the axis `path` of the matrix. Raises RecipeError unless the axis lists different values."""
    _check_path(path, matrix.keys[path])
    node = matrix.child(path)
    if node is None or not node.items:
        what = f"`{path}` in `matrix` is {description(node or matrix)}; a list of values is meant"
        raise RecipeError(what, matrix.keys[path], hint=f"write `{path}: [{_listed(node)}]`")
    meanings: set[str] = set()
    for item in node.items:
        if meaning(item) in meanings:
            raise RecipeError(f"`{path}` in `matrix` lists a value twice", item.at, hint="leave one out")
        meanings.add(meaning(item))
    return node.items


def _rules(name: str, matrix: Node) -> Sequence[Node]:
    """Return the entries of the field `include` or `exclude` of a matrix. Raises RecipeError."""
    node = matrix.child(name)
    if node is None:
        return ()
    if node.items is None or not all(item.mapping for item in node.items):
        what = f"`{name}` in `matrix` is a list of mappings"
        raise RecipeError(what, node.at, hint=f"{name}: [{{target.device: T4, precision: fp16}}]")
    if len(node.items) > MAX_RULES:
        raise RecipeError(f"`{name}` has {len(node.items)} entries; at most {MAX_RULES} are meant", node.at)
    for item in node.items:
        for path, at in item.keys.items():
            _check_path(path, at)
    return node.items


def _check_path(path: str, at: Position) -> None:
    segments = path.split(".")
    if not is_known(segments):
        raise RecipeError(f"`matrix` varies `{path}`, which no recipe has", at, hint=suggestion(segments))


def _check_axes(rule: Node, axes: Mapping[str, Sequence[Node]]) -> None:
    for path, at in rule.keys.items():
        if path not in axes:
            hint = "an entry of `exclude` names values of: " + ", ".join(axes)
            raise RecipeError(f"`exclude` names `{path}`, which the matrix does not vary", at, hint=hint)


def _check_count(count: int, at: Position) -> None:
    if count > MAX_VARIANTS:
        what = f"the matrix stands for {count:,} variants; at most {MAX_VARIANTS:,} are meant"
        raise RecipeError(what, at, hint="split it into several recipes")
