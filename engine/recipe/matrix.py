"""`matrix`: the variants of a recipe, one for each combination of values, with `include` and `exclude`; their names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import product
from math import prod
from typing import Any, NamedTuple

from engine.errors import RecipeError
from engine.recipe.complaints import description
from engine.recipe.node import Node, plain, put, without
from engine.recipe.outline import is_known, suggestion
from engine.recipe.overrides import Assignment, applied, meaning, same, selects
from engine.text.display import shown
from engine.text.places import Position

MAX_VARIANTS = 100_000
"""The most combinations of a matrix, before `exclude`; one with more is refused before they are listed."""
MAX_RULES = 256
"""Upper limit of the number of entries in `include` or `exclude`: each entry is compared with each combination."""
MAX_VALUES_TOGETHER = 1_000_000
"""Upper limit of the number of values that all variants hold together: reading a million takes several seconds."""

_PLACEHOLDER = r"\$\{([^{}]*)\}"
_MAX_SLUG = 48
"""The most characters that one value adds to a variant's name; a longer value is named by its number: `source2`."""
_LISTED = 12
"""The largest number of values of a recipe's field that an error lists."""

_ASSIGNED = re.compile(r",(?=[\w.-]+=)")
"""What stands between two values in the label of a variant."""

Combination = dict[str, Node]
"""A mapping from the dotted path of a field, such as `target.device`, to its value, in the order of the matrix."""
Numbers = Mapping[str, Mapping[str, int]]
"""For each axis of a matrix, a mapping from each value of the axis, as text, to the value's number, counted from 1."""


class Variant(NamedTuple):
    """A variant: the label of its values of the matrix, empty without a matrix, and the variant's whole document."""

    label: str
    root: Node


def variants(root: Node, sets: Sequence[Assignment], only: Sequence[Assignment]) -> list[Variant]:
    """Return those variants of a recipe's document that the assignments `only` select. Raises RecipeError.

    If an assignment of `sets` has the path of an axis of the matrix, the assignment replaces all values of the axis. If
    two variants have the same name, an error is raised, even if `only` does not select these variants.
    """
    matrix = root.child("matrix")
    base = without(root, "matrix")
    combined = combinations(matrix, sets) if matrix is not None else [{}]
    if len(combined) * base.size > MAX_VALUES_TOGETHER:
        what = f"{len(combined):,} variants of {base.size:,} values are more than {MAX_VALUES_TOGETHER:,} together"
        raise RecipeError(what, root.keys["matrix"], hint="split the recipe")
    numbers = _numbers(matrix)
    every = [_variant(base, combination, numbers, sets) for combination in combined]
    _check_names(every)
    selected = [variant for variant in every if selects(variant.root, only)]
    if not selected:
        raise _nothing_selected(every, only)
    return selected


def _variant(base: Node, combination: Combination, numbers: Numbers, sets: Sequence[Assignment]) -> Variant:
    root = base
    for path, value in combination.items():
        try:
            root = put(root, path.split("."), value)
        except LookupError as error:
            raise RecipeError(f"`matrix` cannot vary `{path}`: {error.args[0]}", value.at) from None
    root = applied(root, sets)
    combination = {path: root.find(path.split(".")) or value for path, value in combination.items()}
    numbered = {path: numbers.get(path, {}).get(meaning(value), 1) for path, value in combination.items()}
    return Variant(_label(combination), _named(root, combination, numbered))


def _numbers(matrix: Node | None) -> Numbers:
    axes = (matrix.mapping if matrix else None) or {}
    return {
        path: {meaning(item): index for index, item in enumerate(axis.items or (), 1)} for path, axis in axes.items()
    }


def _check_names(every: Sequence[Variant]) -> None:
    """Raise RecipeError where two variants have one name."""
    labels: dict[str, str] = {}
    for variant in every:
        name = variant.root.find(["name"])
        if name is None or not isinstance(name.value, str):
            continue
        if name.value in labels:
            raise RecipeError(
                f"two variants are called `{name.value}`",
                name.at,
                facts=[labels[name.value], variant.label],
                hint="let `name` say what differs: name: my-model-${target.device}-${precision}",
            )
        labels[name.value] = variant.label


def _nothing_selected(every: Sequence[Variant], only: Sequence[Assignment]) -> RecipeError:
    facts = []
    for path in dict.fromkeys(assignment.path for assignment in only):
        nodes = (variant.root.find(path) for variant in every)
        values = list(dict.fromkeys(written(plain(node)) for node in nodes if node is not None))
        facts.append(f"{'.'.join(path)}: {', '.join(values[:_LISTED]) or 'not said'}")
    hint = "choose one of the values that the recipe has"
    return RecipeError("no variant of the recipe has these values", only[0].at, facts=facts, hint=hint)


def _label(combination: Mapping[str, Node]) -> str:
    """Return the values of a variant in the order of the matrix: `target.device=T4,precision=fp16`."""
    return ",".join(f"{path}={written(plain(value))}" for path, value in combination.items())


def values_of(label: str) -> dict[str, str]:
    """Return the values of a variant by the paths of the matrix's axes, from the variant's label; {} without one."""
    assigned = _ASSIGNED.split(label) if label else []
    return dict(each.split("=", 1) for each in assigned)


def written(value: Any) -> str:
    """Return a value as one line of YAML, with lists in square brackets and mappings in braces."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {written(below)}" for key, below in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(written(item) for item in value) + "]"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)


def _named(root: Node, combination: Mapping[str, Node], numbers: Mapping[str, int]) -> Node:
    """Return a variant's document, with the placeholders `${path}` in its name replaced by the variant's values.

    To a name without a placeholder all values are appended; `numbers` are those of the values on their axes. Raises
    RecipeError.
    """
    node = root.find(["name"])
    if node is None or not isinstance(node.value, str):
        return root  # the schema complains about the name
    template = node.value
    if "${" not in template and "name" not in combination:
        template += "".join(f"-${{{path}}}" for path in combination)

    def value_of(placeholder: re.Match[str]) -> str:
        path = placeholder[1].strip()
        value = combination.get(path) or root.find(path.split("."))
        if value is None:
            what = f"`name` has the placeholder ${{{placeholder[1]}}}, and the recipe has no such field"
            raise RecipeError(what, node.at, hint=suggestion(path.split(".")))
        slug = re.sub(r"[^A-Za-z0-9._]+", "-", written(plain(value))).strip("-")  # fit for the name of a file
        return slug if len(slug) <= _MAX_SLUG else f"{path.split('.')[-1]}{numbers.get(path, 1)}"

    name = re.sub(_PLACEHOLDER, value_of, template)
    return put(root, ["name"], Node(name, node.at, written=name))


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
    count = prod(len(values) for values in axes.values()) + len(included)
    if count > MAX_VARIANTS:
        what = f"the matrix stands for {count:,} variants; at most {MAX_VARIANTS:,} are meant"
        raise RecipeError(what, matrix.at, hint="split it into several recipes")
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
