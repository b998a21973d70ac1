"""Options as JSON values in one canonical form, from which the rows of a key and the step in a worker are both made."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from math import isnan
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from pydantic import BaseModel

M = TypeVar("M", bound="BaseModel")


def encode(model: BaseModel, names: Collection[str] | None = None) -> dict[str, Any]:
    """Return the fields of a pydantic model as JSON values in their canonical form; with `names`, only these fields.

    Mappings are sorted by name, and sets become sorted lists: neither the order in which a recipe writes a mapping nor
    the order of hashes is left. Raises ValueError for a value that JSON has no form for.
    """
    only = None if names is None else set(names)
    dumped = model.model_dump(mode="json", by_alias=False, round_trip=True, include=only)
    return dict(_canonical(model, dumped))


def decode(kind: type[M], encoded: Mapping[str, Any]) -> M:
    """Return the model that `encode` encoded. Raises ValueError for values that do not fit the fields of `kind`."""
    return kind.model_validate(encoded, by_alias=False, by_name=True)


def _canonical(value: Any, dumped: Any) -> Any:
    """Return what pydantic dumped of `value`, with the mappings and the sets in it in canonical order."""
    if not dumped or not isinstance(dumped, dict | list):
        return dumped
    if getattr(value, "__pydantic_root_model__", False):
        value = value.root
    if isinstance(dumped, list):
        items = [_canonical(each, raw) for each, raw in zip(value, dumped, strict=True)]
        return sorted(items, key=json.dumps) if isinstance(value, AbstractSet) else items
    inner = value.values() if isinstance(value, Mapping) else [getattr(value, name) for name in dumped]
    pairs = sorted(zip(dumped, inner, strict=True), key=itemgetter(0))  # strict: two names may have one text in JSON
    return {name: _canonical(each, dumped[name]) for name, each in pairs}


def differing(one: BaseModel, other: BaseModel) -> list[str]:
    """Return the names of the fields in which two models of one kind differ, in value or type: 1, 1.0 and True differ.

    Neither the order of a set or a mapping nor a field that is excluded from the encoding makes a difference.
    """
    names = [name for name, field in type(one).model_fields.items() if not field.exclude]
    return [name for name in names if not _are_same(getattr(one, name), getattr(other, name))]


def _are_same(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if hasattr(one, "model_fields_set"):
        return not differing(one, other) and _are_same(one.model_extra, other.model_extra)
    if isinstance(one, AbstractSet):
        one, other = {each: each for each in one}, {each: each for each in other}
    if isinstance(one, Mapping):
        keys = {key: key for key in other}
        return keys.keys() == one.keys() and all(_are_same(k, keys[k]) and _are_same(one[k], other[k]) for k in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(_are_same, one, other))
    return bool(one == other) or (isinstance(one, float) and isnan(one) and isnan(other))
