"""One document -> its variants: `matrix`, names, `--set` and `--only`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engine.errors import RecipeError
from engine.recipe.matrix import Combination, combinations
from engine.recipe.names import label, named, written
from engine.recipe.node import Node, plain, put, without
from engine.recipe.overrides import Assignment, applied, meaning, selects

MAX_VALUES_TOGETHER = 1_000_000
"""How many values all variants of a recipe may hold together."""

Numbers = Mapping[str, Mapping[str, int]]
"""Axis -> what a value of it says -> which one it is."""


@dataclass(frozen=True)
class Variant:
    """One recipe of a matrix: its values' label and its whole document. Without a matrix the label is empty."""

    label: str
    root: Node


def variants(root: Node, sets: Sequence[Assignment], only: Sequence[Assignment]) -> list[Variant]:
    """Return the variants of a document that are wanted. Raises RecipeError.

    Two variants of one name are refused, whether wanted or not. What `--set` says of an axis stands for all its values.
    """
    matrix = root.child("matrix")
    base = without(root, "matrix")
    combined = combinations(matrix, sets) if matrix is not None else [{}]
    if len(combined) * base.size > MAX_VALUES_TOGETHER:
        what = f"{len(combined):,} variants of {base.size:,} values are more than {MAX_VALUES_TOGETHER:,} together"
        raise RecipeError(what, root.keys["matrix"], hint="split the recipe")
    numbers = _numbers(matrix)
    made = [_variant(base, combination, numbers, sets) for combination in combined]
    _told_apart(made)
    wanted = [variant for variant in made if selects(variant.root, only)]
    if not wanted:
        raise _nothing_left(made, only)
    return wanted


def _variant(base: Node, combination: Combination, numbers: Numbers, sets: Sequence[Assignment]) -> Variant:
    root = base
    for path, value in combination.items():
        try:
            root = put(root, path.split("."), value)
        except LookupError as error:
            raise RecipeError(f"`matrix` cannot vary `{path}`: {error.args[0]}", value.at) from None
    root = applied(root, sets)
    combination = {path: root.find(path.split(".")) or value for path, value in combination.items()}
    return Variant(label(combination), named(root, combination, _places(combination, numbers)))


def _numbers(matrix: Node | None) -> Numbers:
    """Return for each axis which of its values is which, from 1."""
    axes = (matrix.mapping if matrix else None) or {}
    return {
        path: {meaning(item): index for index, item in enumerate(axis.items or (), 1)} for path, axis in axes.items()
    }


def _places(combination: Combination, numbers: Numbers) -> Mapping[str, int]:
    """Return for each value which one of its axis it is, from 1."""
    return {path: numbers.get(path, {}).get(meaning(value), 1) for path, value in combination.items()}


def _told_apart(made: Sequence[Variant]) -> None:
    seen: dict[str, str] = {}
    for variant in made:
        name = variant.root.find(["name"])
        if name is None or not isinstance(name.value, str):
            continue
        if name.value in seen:
            raise RecipeError(
                f"two variants are called `{name.value}`",
                name.at,
                facts=[seen[name.value], variant.label],
                hint="let `name` say what differs: name: my-model-${target.device}-${precision}",
            )
        seen[name.value] = variant.label


def _nothing_left(made: Sequence[Variant], only: Sequence[Assignment]) -> RecipeError:
    there = []
    for path in dict.fromkeys(assignment.path for assignment in only):
        found = (variant.root.find(path) for variant in made)
        values = dict.fromkeys(written(plain(node)) for node in found if node is not None)
        there.append(f"{'.'.join(path)}: {', '.join(list(values)[:12]) or 'not said'}")
    hint = "choose one of the values that the recipe has"
    return RecipeError("no variant of the recipe has these values", only[0].at, facts=there, hint=hint)
