"""Changes one field in a text of YAML at a time: comments, line breaks and all other fields stay as they are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml

from engine.drafts.draft import ORDER, field_lines, flow, scalar

Path = tuple[str, ...]
"""The keys of the mappings around a field, and its own key. A list has no fields: it is one value."""
_FIRST = ("recipe", "extends", "abstract", *ORDER)
"""The sections of a recipe in the order in which a new one finds its place."""


def with_value(text: str, path: Path, value: object) -> str:
    """Return a text with a value at `path`, in the place of an earlier one or in a new field."""
    around, index, (name, *inner) = _innermost(text, path)
    for each in reversed(inner):
        value = {each: value}
    indent = around.start_mark.column
    new = f"{scalar(name)}: {flow(value)}"
    if not around.flow_style:
        new = "\n".join(field_lines((name,), value, {}, indent)).lstrip(" ")
    if index is not None:
        key, old = around.value[index]
        return _replaced(text, key.start_mark.index, _end(text, old), new)
    if around.flow_style:
        at = _end(text, around.value[-1][1]) if around.value else around.start_mark.index + 1
        return f"{text[:at]}{', ' if around.value else ''}{new}{text[at:]}"
    earlier = [pair for pair in around.value if indent or _rank(pair[0].value) <= _rank(name)]
    at = _line_end(text, _end(text, (earlier or around.value)[-1][1]))
    gap = "\n\n" if not indent and "\n" in new and "\n\n" in text else "\n"
    return f"{text[:at]}{gap}{' ' * indent}{new}{text[at:]}"


def without(text: str, path: Path) -> str:
    """Return a text without the field at `path`, and the same text if it has none. The last field leaves `{}`."""
    around, index, rest = _innermost(text, path)
    if index is None or len(rest) > 1:
        return text
    if len(around.value) == 1:
        return with_value(text, path[:-1], {})
    start, end = around.value[index][0].start_mark.index, _end(text, around.value[index][1])
    if around.flow_style:
        if index + 1 < len(around.value):
            return _replaced(text, start, around.value[index + 1][0].start_mark.index, "")
        return _replaced(text, _end(text, around.value[index - 1][1]), end, "")
    start, end = _line_start(text, start), _line_end(text, end) + 1
    if text[:start].endswith("\n\n") and text[end : end + 1] in ("", "\n"):
        start -= 1  # of the blank lines above and below the field, one stays
    return _replaced(text, start, end, "")


def comments(text: str) -> Iterator[tuple[int, int]]:
    """Yield where each comment of a text starts and ends: nothing else but blanks stands between two tokens."""
    last = 0
    for token in yaml.scan(text, Loader=yaml.SafeLoader):
        yield from (each.span() for each in re.compile("#[^\n]*").finditer(text, last, token.start_mark.index))
        last = token.end_mark.index


def has_alias(text: str) -> bool:
    """Whether a value of a text stands for another one, by `*name`: a change of one would change both."""
    return any(isinstance(each, yaml.AliasToken) for each in yaml.scan(text, Loader=yaml.SafeLoader))


def _innermost(text: str, path: Path) -> tuple[Any, int | None, Path]:
    """Return the innermost mapping on the way to a field, and the rest of the path, which begins with a key of it.

    The number is that of this key in the mapping; None if the mapping has no such key.
    """
    around: Any = yaml.compose(text, Loader=yaml.SafeLoader)
    while True:
        index = next((index for index, (key, _) in enumerate(around.value) if key.value == path[0]), None)
        if index is None or len(path) == 1 or not isinstance(around.value[index][1], yaml.MappingNode):
            return around, index, path
        around, path = around.value[index][1], path[1:]


def _replaced(text: str, start: int, end: int, new: str) -> str:
    """Return a text with a part replaced. Comments in it come to stand above; those behind a removed field go."""
    line = _line_start(text, start)
    margin = " " * (len(text[line:]) - len(text[line:].lstrip(" ")))
    inside = [(at, after) for at, after in comments(text) if start <= at < end]
    kept = [text[at:after] for at, after in inside if new or not text[_line_start(text, at) : at].strip()]
    above = "".join(f"{margin}{each}\n" for each in kept)
    return f"{text[:line]}{above}{text[line:start]}{new}{text[end:]}"


def _rank(name: str) -> int:
    return _FIRST.index(name) if name in _FIRST else len(_FIRST)


def _end(text: str, node: Any) -> int:
    """Return where a value ends: PyYAML counts the lines below a block, comments included, as a part of it."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style:
        last = node.value[-1]
        return _end(text, last[1] if isinstance(node, yaml.MappingNode) else last)
    start = node.start_mark.index
    return int(start + len(text[start : node.end_mark.index].rstrip()))


def _line_start(text: str, at: int) -> int:
    return text.rfind("\n", 0, at) + 1


def _line_end(text: str, at: int) -> int:
    """Return where the line of an index ends, in front of its break."""
    end = text.find("\n", at)
    return len(text) if end < 0 else end
