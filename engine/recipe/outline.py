"""The fields at each path of the schema, for hints and for the checks of `--set`, `--only` and `matrix`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel
from typing_extensions import is_typeddict

from engine.recipe.model_config import MODEL_CONFIG
from engine.recipe.schema import Recipe, Shape, Triton
from engine.text import suggestions

_ANYTHING = Any
_NOT_WRITTEN = ("axes", "shape_values")
"""Fields of the pydantic models that a recipe writes under no key of their own."""
_BRACKETS = r"\[(\d+)\]|\[[^\]]*\]"
"""The index of an item as other tools write it: `shapes[0]`. Only a number is an index here, as in `shapes.0`."""
_ALIKE_BELOW = 0.75
"""The least similarity, from 0 to 1, of a section's field that a hint offers for an unknown top-level word."""


def fields_at(path: Sequence[str | int]) -> Sequence[str] | None:
    """Return the names of the fields that a recipe may have at `path`, or None if the value at `path` is no section."""
    kind = _kind_at(path)
    return None if kind is None else _names(kind)


def is_known(path: Sequence[str | int]) -> bool:
    """Tell whether a recipe may have a value at `path`."""
    return bool(path) and _kind_at(path) is not None


def dotted(path: Sequence[str | int]) -> str:
    """Return a path with dots, as in `--set` and `matrix`: `target.device`, `profiles.0.batch`."""
    return ".".join(str(segment) for segment in path)


def suggestion(path: Sequence[str | int]) -> str:
    """Return the hint for an unknown path: the nearest known path, or the fields beside the first unknown segment."""
    words = [word for word in re.sub(_BRACKETS, r".\1", dotted(path)).split(".") if word]
    if (whole := _nearest(words)) is not None:
        return suggestions.did_you_mean(f"`{dotted(whole)}`")
    for end, word in enumerate(words):
        fields = fields_at(words[:end])
        if fields is None or word in fields:
            continue
        if near := suggestions.nearest(word, fields):
            return suggestions.did_you_mean(f"`{dotted((*words[:end], near[0]))}`")
        if end == 0 and (deep := suggestions.nearest(word, _leaves(), least=_ALIKE_BELOW)):
            return suggestions.did_you_mean(f"`{_leaves()[deep[0]]}`")
        where = f"in `{dotted(words[:end])}`" if end else "here"
        return f"known {where}: " + ", ".join(fields)
    return "a path looks like target.device or package.triton.name"


def _nearest(words: Sequence[str]) -> Sequence[str] | None:
    """Return the known path that looks like `words`, with missing indices of lists as 0; None for no such path."""
    path: list[str] = []
    if words and words[0] in _leaves() and words[0] not in (fields_at(()) or ()):
        *path, first = _leaves()[words[0]].split(".")
        words = [first, *words[1:]]
    for word in words:
        if not word.isdecimal() and is_known((*path, "0")) and not is_known((*path, word)):
            path.append("0")
        fields = fields_at(path) or ()
        near = [word] if word in fields else suggestions.nearest(word, fields)
        path.append(word if is_known((*path, word)) or not near else near[0])
    return path if is_known(path) else None


def _leaves() -> Mapping[str, str]:
    """Return a mapping from the name of each field of a section to the field's path: `device` -> `target.device`."""
    leaves: dict[str, str] = {}
    for section in _names(Recipe) or ():
        for name in fields_at([section]) or ():
            leaves.setdefault(name, f"{section}.{name}")
    for name in MODEL_CONFIG:
        leaves.setdefault(name, f"package.triton.{name}")
    return leaves


def _kind_at(path: Sequence[str | int]) -> Any:
    kind: Any = Recipe
    for segment in path:
        kind = _below(_bare(kind), str(segment))
        if kind is None:
            return None
    return _bare(kind)


def _below(kind: Any, segment: str) -> Any:
    """Return the type of the value at `segment`, a key or index, in a value of type `kind`; None for an unknown one."""
    if kind is _ANYTHING:
        return _ANYTHING
    fields = _fields(kind)
    if fields is not None:
        beside = {Shape: int, Triton: _ANYTHING if segment in MODEL_CONFIG else None}
        return fields.get(segment, beside.get(kind))
    arguments = get_args(kind)
    if isinstance(get_origin(kind), type) and issubclass(get_origin(kind), Mapping):
        choices = get_args(arguments[0])
        is_free = get_origin(arguments[0]) is Annotated or arguments[0] is str
        return arguments[1] if is_free or segment in choices else None
    if get_origin(kind) is tuple:
        return arguments[0] if segment.isdecimal() else None
    if kind in (dict, Mapping):
        return _ANYTHING
    return None


def _fields(kind: Any) -> dict[str, object] | None:
    """Return the fields of a pydantic model or a TypedDict by their YAML names, or None for a type that is neither."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        fields = kind.model_fields.items()
        return {field.alias or name: field.annotation for name, field in fields if name not in _NOT_WRITTEN}
    if is_typeddict(kind):
        return get_type_hints(kind, include_extras=True)
    return None


def _names(kind: Any) -> Sequence[str] | None:
    fields = _fields(kind)
    if fields is not None:
        if kind is Shape:
            return None
        return (*fields, *(name for name in MODEL_CONFIG if name not in fields)) if kind is Triton else tuple(fields)
    arguments = get_args(kind)
    if arguments and get_origin(kind) is not tuple and get_origin(arguments[0]) is not Annotated:
        return [str(name) for name in get_args(arguments[0])] or None
    return None


def _bare(kind: Any) -> Any:
    """Return a type without `Annotated` and without `| None`."""
    while True:
        if get_origin(kind) is Annotated:
            kind = get_args(kind)[0]
        elif get_origin(kind) in (Union, UnionType):
            kind = next(argument for argument in get_args(kind) if argument is not type(None))
        else:
            return kind
