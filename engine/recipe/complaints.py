"""Turns pydantic's errors about a recipe into one error in plain words, at the first wrong place of the recipe."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from engine.errors import RecipeError
from engine.recipe import other_tools
from engine.recipe.fields import PATTERNS
from engine.recipe.node import Node, place, walk_down
from engine.recipe.outline import dotted, fields_at, suggestion
from engine.text import quantities, suggestions
from engine.text.display import described, shown
from engine.text.places import Position

_SHORT_FORMS = {
    "Range": "a size, [min, opt, max] or {min: 1, opt: 16, max: 128} is meant",
    "Values": "values are meant, as in [[1, 16], [4, 16], [8, 16]]",
    "Bound": "a number or {at_least: 0.99} is meant",
    "Metric": "a number or {name: accuracy, at_least: 0.9} is meant",
    "PerplexityOnText": "the file of a text is meant, as in {text: corpus.txt, at_most: 1.05}",
    "Shape": "sizes by axis are meant, as in {batch: 1, sequence: 16}",
}
_TYPES = {
    "bool_type": "true or false is meant",
    "bool_parsing": "true or false is meant",
    "int_parsing": "a whole number is meant",
    "float_parsing": "a number is meant",
    "int_type": "a whole number is meant",
    "int_from_float": "a whole number is meant",
    "float_type": "a number is meant",
    "tuple_type": "a list is meant, as in [1, 2]",
    "list_type": "a list is meant, as in [1, 2]",
    "dict_type": "a mapping of fields is meant, as in {key: value}",
    "mapping_type": "a mapping of fields is meant, as in {key: value}",
    "finite_number": "a finite number is meant",
}
_OTHERS = 8
"""How many further errors of a recipe are shown; the rest is counted."""
_SECTIONS = ("model_type", "model_attributes_type", "dict_type", "mapping_type", "tuple_type", "list_type")
_NUMBERS = ("int_parsing", "float_parsing", "int_type", "int_from_float", "float_type")
_WHOLE = ("int_parsing", "int_type", "int_from_float")
_NUMERIC_FORMS = ("Range", "Bound", "Metric")
"""The pydantic models whose short form is a number."""
_SIZES = r"\s*([0-9]+)\s*(?:-|,|:|\.\.|to)\s*([0-9]+)\s*"
"""Matches two sizes in one text, as in `1-8`."""
_KEY = "[key]"
"""If `_KEY` stands in a path of pydantic, the error is about a key of a mapping, not about the key's value."""


def complaint(
    error: ValidationError, root: Node, files: Sequence[Path], below: Sequence[str | int] = ()
) -> RecipeError:
    """Return the first of a recipe's validation errors as a RecipeError, with the other errors as facts.

    Errors are sorted by place: an error in an earlier file of `files` (the recipe, then its parents) comes before an
    error in a later file. If pydantic validated only a part of the recipe, `below` is the path of that part.
    """
    details: list[Any] = [
        {**detail, "loc": (*below, *detail["loc"])} for detail in error.errors(include_url=False, include_input=False)
    ]
    causes = [detail for detail in details if not _follows(detail, details)]
    order = {str(file): index for index, file in enumerate(files)}

    def first_in_text(detail: Any) -> tuple[int, int, int, bool]:
        position = _position(detail, root)
        # At one place, an error about a present field comes before an error about a missing field.
        missing = detail["type"] == "missing"
        return order.get(position.file, len(order)), position.line, position.column, missing

    causes.sort(key=first_in_text)
    # One wrong value may break several rules: the first error of each place is shown.
    places = {(_position(cause, root), cause["type"] == "missing"): cause for cause in reversed(causes)}
    first, *others = [(position, *_in_words(cause, root)) for (position, _), cause in reversed(places.items())]
    facts = [f"also {position}: {what}{hint and f' ({hint})'}" for position, what, hint in others[:_OTHERS]]
    if len(others) > _OTHERS:
        facts.append(f"and {len(others) - _OTHERS} more")
    position, what, hint = first
    return RecipeError(what, position, facts=facts, hint=hint)


def _follows(detail: Any, details: Sequence[Any]) -> bool:
    """Tell whether the validation error `detail` is only the consequence of another validation error in `details`."""
    place, depth = detail["loc"], len(detail["loc"])
    if detail["type"] == "too_short":  # pydantic does not count a wrong item of a list
        return any(len(other["loc"]) > depth and other["loc"][:depth] == place for other in details)
    if detail["type"] in _SECTIONS:  # its items stand beside it, each behind a dash without a blank
        return any(str(other["loc"][-1]).startswith("-") for other in details if other["loc"][:-1] == place[:-1])
    if detail["type"] == "missing":  # the field is not missing but misspelt
        unknown = [each["loc"] for each in details if each["type"] == "extra_forbidden"]
        beside = [str(loc[-1]) for loc in unknown if loc[:-1] == place[:-1]]
        return bool(
            suggestions.nearest(place[-1], beside) or any(other_tools.other_name(each, place[-1:]) for each in beside)
        )
    return False


def _path(detail: Any) -> list[str | int]:
    path = [segment for segment in detail["loc"] if segment != _KEY]
    key = detail.get("ctx", {}).get("key")
    return [*path, key] if key else path


def _position(detail: Any, root: Node) -> Position:
    """Return the place of an error: of the wrong value, of the wrong key, or of the section that lacks a field."""
    path = list(walk_down(root, _path(detail)))
    if path and (detail["type"] == "extra_forbidden" or _KEY in detail["loc"]):
        parent = root.find(path[:-1])
        if parent is not None and str(path[-1]) in parent.keys:
            return parent.keys[str(path[-1])]
    return place(root, path) or root.at


def _in_words(detail: Any, root: Node) -> tuple[str, str]:
    """Return the message of a pydantic validation error in plain words, and a hint."""
    path = _path(detail)
    existing = list(walk_down(root, path))
    node = root.find(existing) or root
    kind, context = detail["type"], detail.get("ctx", {})
    name = f"`{dotted(existing)}`" if existing else "the recipe"
    if kind == "missing":
        return f"`{dotted([*existing, path[-1]])}` is missing", _example(str(path[-1]), node)
    if kind == "extra_forbidden" or _KEY in detail["loc"]:
        what = f"unknown field `{shown(str(path[-1]))}`{_inside(existing[:-1])}"
        return what, _other_field(str(path[-1]), existing[:-1])
    if kind == "recipe":
        return f"{name} {context['what']}", context["hint"]
    if kind == "string_type" and node.written and not isinstance(node.value, str):
        return f"{name} is text, and unquoted {description(node)} is not", f'quote it: "{shown(node.written)}"'
    if kind == "literal_error":
        choices = re.findall(r"'([^']*)'", context["expected"])
        return f"{name} cannot be {description(node)}", _choice(node, existing, choices)
    return f"{name} is {description(node)}; {_meant(kind, context)}", _hint(kind, context, existing, node)


def _other_field(name: str, path: Sequence[str | int]) -> str:
    """Return the hint for an unknown field of the section `path`: the field that is meant, or all of its fields."""
    fields = fields_at(path) or ()
    if hint := _punctuation(name, fields):
        return hint
    if other := other_tools.other_name(name, fields):
        return suggestions.did_you_mean(f"`{other}`")
    is_foreign = not path or bool(other_tools.field(name))
    if inner := next((each for each in fields if not is_foreign and name in (fields_at([*path, each]) or ())), None):
        return suggestions.did_you_mean(f"`{dotted([*path, inner, name])}`")
    if not is_foreign and name in (fields_at(()) or ()):
        return f"`{name}` is a field of the recipe itself: indent it as `{path[0]}`"
    if path and suggestions.nearest(name, fields):
        return suggestions.hint(name, fields)
    return other_tools.field(name) or suggestion([*path, name])


def _punctuation(name: str, fields: Sequence[str]) -> str:
    """Return the hint for a name that holds a sign of another syntax, or lacks a blank; "" for other names."""
    for sign in ":=":
        key, stands, value = (part.strip() for part in name.partition(sign))
        if stands and key in fields:
            lacks = "a blank is missing behind the colon: " if sign == ":" else "write "
            return f"{lacks}`{key}: {shown(value)}`"
    return f"a blank is missing behind the dash: `- {shown(name[1:])}:`" if name.startswith("-") else ""


def _choice(node: Node, path: Sequence[str | int], choices: Sequence[str]) -> str:
    """Return the hint for a value that is none of `choices`: a word of another tool, or several values in a list."""
    items = [each.value for each in node.items or ()]
    if items and all(item in choices for item in items):
        return f"for a variant of each: `matrix: {{{dotted(path)}: [{', '.join(map(str, items))}]}}`"
    listed = [word.strip() for word in str(node.written).split(",")]
    if len(listed) > 1 and all(word in choices for word in listed):
        return f"for a variant of each: `matrix: {{{dotted(path)}: [{', '.join(listed)}]}}`"
    if instead := other_tools.instead(str(node.written), choices):
        return instead
    if meant := other_tools.meant(str(node.written), choices):
        return suggestions.did_you_mean(f"`{meant}`")
    return suggestions.hint(shown(node.written), choices)


def _hint(kind: str, context: Mapping[str, Any], path: Sequence[str | int], node: Node) -> str:
    """Return the hint for a number with a unit, such as `5ms`, or in quotes; "" where the value is no such number."""
    if kind in _SECTIONS and (form := other_tools.section(path, node)):
        return form
    if kind == "string_pattern_mismatch" and path[-1:] == ["name"]:
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", str(node.value)).strip("-._")
        return f"write `name: {name or 'my-model'}`"
    items = [each.value for each in node.items or ()]
    if kind == "string_type" and len(items) == 1 and isinstance(items[0], str):
        return f"one is meant: write `{path[-1]}: {shown(items[0])}`"
    if isinstance(node.value, str) and (sizes := re.fullmatch(_SIZES, node.value)):
        return _each_size(sizes[1], sizes[2], context, path)
    field = next((each for each in reversed(path) if isinstance(each, str)), "")
    if kind in _NUMBERS or context.get("class_name") in _NUMERIC_FORMS:
        return _number(node, field, context, whole=kind in _WHOLE)
    return _form(kind, field, path, node)


def _number(node: Node, field: str, context: Mapping[str, Any], *, whole: bool) -> str:
    """Return the hint for a value in place of a number: the number or the numbers in it, or an example."""
    form = context.get("class_name")
    if isinstance(node.value, str | float) and (
        written := quantities.hint(node.written, field, accepts=float.is_integer if whole else math.isfinite)
    ):
        return written
    numbers = re.findall(r"\d+(?:\.\d+)?", node.written) if isinstance(node.value, str) else []
    if form == "Range" and len(numbers) == 3:  # noqa: PLR2004  min, opt and max
        return f"write [{', '.join(numbers)}]: min, opt and max"
    if form == "Bound" and len(numbers) == 1:
        return f"write {numbers[0]}"
    if isinstance(node.value, int | float):
        return ""
    return f"write a number, as in `{field}: {'0.99' if form in ('Bound', 'Metric') else '2'}`"


def _form(kind: str, field: str, path: Sequence[str | int], node: Node) -> str:
    """Return the hint for a value of another form than the field has: true or false, a list, one value, a section."""
    if kind.startswith("bool"):
        meant = {"yes": "true", "on": "true", "no": "false", "off": "false"}
        return f"write `{field}: {meant.get(node.written.lower(), 'true')}`"
    if kind in ("tuple_type", "list_type"):
        return f"write `{field}: [{shown(node.written)}]`" if node.written else ""
    if kind == "string_type" and node.items and isinstance(node.items[0].value, str):
        return f"one is meant, as in `{field}: {shown(node.items[0].value)}`"
    fields = fields_at(path) if kind in _SECTIONS else None
    return f"its fields are: {', '.join(fields)}" if fields else ""


def _each_size(least: str, greatest: str, context: Mapping[str, Any], path: Sequence[str | int]) -> str:
    """Return the hint for two sizes in one text, such as `1-8`: in a profile a range, elsewhere two entries."""
    if context.get("class_name") == "Range":
        return f"write [{least}, {greatest}, {greatest}]: min, opt and max"
    return f"write an entry for each: {{{path[-1]}: {least}}}, {{{path[-1]}: {greatest}}}"


def _meant(kind: str, context: Mapping[str, Any]) -> str:
    if kind in ("model_type", "model_attributes_type"):
        return _SHORT_FORMS.get(context.get("class_name", ""), _TYPES["dict_type"])
    if kind in _TYPES:
        return _TYPES[kind]
    words = _LIMITS.get(kind)
    return words(context) if words else "something else is meant"


_LIMITS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "string_type": lambda _: "text is meant",
    "greater_than_equal": lambda context: f"at least {context['ge']:,} is meant",
    "greater_than": lambda context: f"more than {context['gt']:g} is meant",
    "less_than_equal": lambda context: f"at most {context['le']:,} is meant",
    "string_too_long": lambda context: f"at most {context['max_length']} characters are meant",
    "string_pattern_mismatch": lambda context: f"{PATTERNS.get(context['pattern'], 'other text')} is meant",
    "too_long": lambda context: f"at most {context['max_length']} entries are meant",
    "too_short": lambda context: f"at least {context['min_length']} entry is meant",
}


def description(node: Node) -> str:
    """Return a short description of a value for an error: `a list of 3`, `the text 'tiny'`, `true`."""
    if node.value is None and not node.written:
        return "empty"
    return shown(node.written) if isinstance(node.value, int | float) else described(node.value)


def _inside(path: Sequence[str | int]) -> str:
    return f" in `{dotted(path)}`" if path else ""


def _example(name: str, section: Node) -> str:
    """Return the hint to add a field to a section; a profile without `opt` is the best for its largest size."""
    opt, most = (section.find([each]) for each in ("opt", "max"))
    examples = {
        "min": "min: 1",
        "opt": f"opt: {most.written if most else 8}",
        "max": f"max: {opt.written if opt else 32}",
        "name": "name: my-model",
        "model": "model: {source: path/to/model}",
        "source": "source: path/to/model, model.onnx, hf:REPO, python:PACKAGE/path or timm:NAME",
        "samples": "samples: samples.jsonl",
        "runtime": "runtime: pytorch",
    }
    return f"add `{examples[name]}`" if name in examples else f"add `{name}:`"
