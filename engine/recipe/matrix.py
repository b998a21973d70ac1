"""`matrix`: the combinations of values that one recipe stands for, with include and exclude."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import prod

from engine.errors import RecipeError
from engine.recipe.complaints import found_there
from engine.recipe.node import Node
from engine.recipe.outline import is_known, suggestion
from engine.recipe.overrides import Assignment, meaning, same
from engine.text.places import Position

MAX_VARIANTS = 100_000
MAX_RULES = 256
"""How many entries `include` and `exclude` may have."""

Combination = dict[str, Node]
"""Dotted path -> value, in the order of the matrix."""


def combinations(matrix: Node, pinned: Sequence[Assignment]) -> list[Combination]:
    """Return what each variant sets. Raises RecipeError.

    As in GitHub Actions: `exclude` removes the combinations that have all of an entry's values; then each entry of
    `include` is added to every combination whose own values it leaves as they are, or stands alone where none is.
    `pinned` (`--set`) stands for the values of an axis of the same path.
    """
    if not matrix.mapping:
        what = f"`matrix` is {found_there(matrix)}; lists of values by path are meant"
        raise RecipeError(what, matrix.at, hint="matrix: {target.device: [T4, L4], precision: [fp32, fp16]}")
    axes = {path: _values(path, matrix) for path in matrix.mapping if path not in ("include", "exclude")}
    axes |= {path: [item.value] for item in pinned if (path := ".".join(item.path)) in axes}
    included, excluded = _rules("include", matrix), _rules("exclude", matrix)
    _bound(prod(len(values) for values in axes.values()) + len(included), matrix.at)
    for rule in excluded:
        _only_axes(rule, axes)
    made = [dict(zip(axes, values, strict=True)) for values in product(*axes.values())] if axes else []
    kept = [one for one in made if not any(_has(one, rule.mapping or {}) for rule in excluded)]
    result = _with_included(kept, included)
    if not result:
        raise RecipeError("`exclude` leaves no variant", matrix.keys["exclude"], hint="leave one of its entries out")
    return result


def _with_included(kept: Sequence[Combination], included: Sequence[Node]) -> list[Combination]:
    result = [dict(one) for one in kept]
    alone: list[Combination] = []
    for rule in included:
        entry = rule.mapping or {}
        own = [{path: value for path, value in entry.items() if path in one} for one in kept]
        fits = [index for index, one in enumerate(kept) if _has(one, own[index])]
        for index in fits:
            result[index] |= entry
        if not fits:
            alone.append(dict(entry))
    return result + alone


def _has(one: Combination, entry: Mapping[str, Node]) -> bool:
    return all(same(one.get(path), value) for path, value in entry.items())


def _values(path: str, matrix: Node) -> Sequence[Node]:
    _known(path, matrix.keys[path])
    node = matrix.child(path)
    if node is None or not node.items:
        found = found_there(node or matrix)
        raise RecipeError(f"`{path}` in `matrix` is {found}; a list of values is meant", matrix.keys[path])
    seen: set[str] = set()
    for item in node.items:
        said = meaning(item)
        if said in seen:
            raise RecipeError(f"`{path}` in `matrix` lists a value twice", item.at, hint="leave one out")
        seen.add(said)
    return node.items


def _rules(name: str, matrix: Node) -> Sequence[Node]:
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
            _known(path, at)
    return node.items


def _known(path: str, at: Position) -> None:
    segments = path.split(".")
    if not is_known(segments):
        raise RecipeError(f"`matrix` varies `{path}`, which no recipe has", at, hint=suggestion(segments))


def _only_axes(rule: Node, axes: Mapping[str, Sequence[Node]]) -> None:
    for path, at in rule.keys.items():
        if path not in axes:
            hint = "an entry of `exclude` names values of: " + ", ".join(axes)
            raise RecipeError(f"`exclude` names `{path}`, which the matrix does not vary", at, hint=hint)


def _bound(count: int, at: Position) -> None:
    if count > MAX_VARIANTS:
        what = f"the matrix stands for {count:,} variants; at most {MAX_VARIANTS:,} are meant"
        raise RecipeError(what, at, hint="split it into several recipes")
