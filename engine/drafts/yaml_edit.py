"""Changes one field in a text of YAML at a time; every other character stays, comments and line breaks too."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from engine.drafts.draft import BEHIND, ORDER, field_lines, flow, scalar

_FIRST = ("recipe", "extends", "abstract", *ORDER)
"""The sections of a recipe in the order of the shipped ones."""
_COMMENT = re.compile(r"(?<!\S)#[^\r\n\x85\u2028\u2029]*")
Path = tuple[str | int, ...]


@dataclass(frozen=True)
class _Spot:
    """Where a value stands in a text, with its key or its place in a list; and the collection around it."""

    around: Any
    index: int
    """The number of the value in the collection."""

    @property
    def key(self) -> Any:
        """The node of the key; None in a list."""
        return self.around.value[self.index][0] if isinstance(self.around, yaml.MappingNode) else None

    @property
    def value(self) -> Any:
        item = self.around.value[self.index]
        return item[1] if isinstance(self.around, yaml.MappingNode) else item

    @property
    def start(self) -> int:
        return int((self.key or self.value).start_mark.index)


def with_value(text: str, path: Path, value: Any) -> str:
    """Return a text of YAML with a value at `path`, which is in a mapping or names an item that its list has."""
    spot, name = _spot(text, path), path[-1]
    if spot is None:
        return _with_new(text, _node(text, path[:-1]), str(name), value)
    start, end = spot.value.start_mark.index, _end(text, spot.value)
    if spot.key is not None and not spot.around.flow_style and (_is_block(spot.value) or len(_lines(name, value)) > 1):
        return _replaced(text, spot.start, end, "\n".join(_lines(name, value, spot.key.start_mark.column)).lstrip(" "))
    if end > start and (spot.key is None or spot.value.start_mark.line == spot.key.end_mark.line):
        return _replaced(text, start, end, flow(value))
    behind = start if spot.key is None else text.index(":", spot.key.end_mark.index) + 1
    return _replaced(text, behind, max(end, behind), f" {flow(value)}")


def without(text: str, path: Path) -> str:
    """Return a text of YAML without the field at `path`. A mapping without any field is `{}`."""
    spot = _spot(text, path)
    if spot is None:
        return text
    pairs, end = spot.around.value, _end(text, spot.value)
    if len(pairs) == 1:
        return with_value(text, path[:-1], {})
    line = _line_start(text, spot.start)
    following = pairs[spot.index + 1][0].start_mark.index if spot.index + 1 < len(pairs) else None
    if not spot.around.flow_style and not text[line : spot.start].strip():
        below = _line_end(text, end)
        if text[:line].endswith("\n\n") and (text[below:].startswith("\n\n") or not text[below:].strip()):
            line -= 1  # of the blank lines above and below the field, one stays
        return _replaced(text, line, min(below + 1, len(text)), "")
    if following is not None:
        return _replaced(text, spot.start, following, "")
    return _replaced(text, _end(text, pairs[spot.index - 1][1]), end, "")


def with_note(text: str, path: Path, note: str) -> str:
    """Return a text of YAML with a comment behind a field, after the comment that stands there; no text without it."""
    spot = _spot(text, path)
    if spot is None:
        return text
    end = _line_end(text, spot.start if _is_block(spot.value) else _end(text, spot.value))
    start = _line_start(text, end)
    is_first = not text[start : spot.start].strip(" -")
    said = note if is_first or spot.key is None else f"{spot.key.value}: {note}"
    comment = next((at for at, _ in comments(text) if start <= at < end), None)
    if comment is None:
        return f"{text[:start]}{text[start:end].rstrip():<{BEHIND}}  # {said}{text[end:]}"
    return text if said in text[comment:end] else f"{text[:end].rstrip()}; {said}{text[end:]}"


def comments(text: str) -> Iterator[tuple[int, int]]:
    """Yield where each comment of a YAML text starts and ends."""
    tokens = (each for each in yaml.scan(text, Loader=yaml.SafeLoader) if isinstance(each, yaml.ScalarToken))
    scalars = [(each.start_mark.index, each.end_mark.index) for each in tokens]
    at = 0
    while found := _COMMENT.search(text, at):
        inside = next((end for start, end in scalars if start <= found.start() < end), None)
        if inside is None:
            yield found.span()
        at = found.end() if inside is None else inside


def has_alias(text: str) -> bool:
    """Whether a value of a YAML text stands for another one, by `*name`."""
    return any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, Loader=yaml.SafeLoader))


def _with_new(text: str, around: yaml.MappingNode, name: str, value: Any) -> str:
    """Return a text with a new field of a mapping: at the mapping's end, or in the order of a recipe's sections."""
    pairs, is_root = around.value, around.start_mark.column == 0
    if around.flow_style:
        at = _end(text, pairs[-1][1]) if pairs else around.start_mark.index + 1
        return f"{text[:at]}{', ' if pairs else ''}{scalar(name)}: {flow(value)}{text[at:]}"
    earlier = [pair for pair in pairs if not is_root or _rank(pair[0].value) <= _rank(name)]
    last = (earlier or pairs)[-1]
    indent = pairs[0][0].start_mark.column
    lines = "\n".join(_lines(name, value, indent))
    at = _line_end(text, max(_end(text, last[1]), last[0].end_mark.index))
    gap = "\n\n" if is_root and "\n" in lines and "\n\n" in text else "\n"
    following = gap if gap == "\n\n" and text[at:].strip() and not text[at:].startswith("\n\n") else ""
    return f"{text[:at]}{gap}{lines}{following}{text[at:] or chr(10)}"


def _rank(name: str) -> int:
    return _FIRST.index(name) if name in _FIRST else len(_FIRST)


def _replaced(text: str, start: int, end: int, new: str) -> str:
    """Return a text with a part replaced; comments in it come to stand above, but not those behind removed fields."""
    line, first = _line_start(text, start), _line_end(text, start)
    inside = [span for span in comments(text) if start <= span[0] < end]
    own_line = [not text[_line_start(text, at) : at].strip() for at, _ in inside]
    kept = [text[a:b] for (a, b), is_alone in zip(inside, own_line, strict=True) if is_alone or (new and a < first)]
    margin = text[line:start] if not text[line:start].strip() else " " * (len(text[line:]) - len(text[line:].lstrip()))
    above = "".join(f"{margin}{each}\n" for each in kept)
    return f"{text[:line]}{above}{text[line:start]}{new}{text[end:]}"


def _node(text: str, path: Sequence[str | int]) -> Any:
    """Return the node of PyYAML at a path."""
    if path:
        spot = _spot(text, tuple(path))
        return None if spot is None else spot.value
    return yaml.compose(text, Loader=yaml.SafeLoader)


def _spot(text: str, path: Path) -> _Spot | None:
    """Return where the value at a path stands; None where the text has none."""
    around: Any = yaml.compose(text, Loader=yaml.SafeLoader)
    for depth, segment in enumerate(path, 1):
        names = (
            [key.value for key, _ in around.value] if isinstance(around, yaml.MappingNode) else range(len(around.value))
        )
        if segment not in names:
            return None
        spot = _Spot(around, list(names).index(segment))
        if depth == len(path):
            return spot
        around = spot.value
    return None


def _end(text: str, node: Any) -> int:
    """Return where a value ends: PyYAML counts the lines below a block, comments included, as a part of it."""
    if _is_block(node) and isinstance(node, yaml.CollectionNode):
        last = node.value[-1]
        return _end(text, last[1] if isinstance(node, yaml.MappingNode) else last)
    start = node.start_mark.index
    return int(start + len(text[start : node.end_mark.index].rstrip()))


def _is_block(node: Any) -> bool:
    return isinstance(node, yaml.CollectionNode) and not node.flow_style


def _lines(name: str | int, value: Any, indent: int = 0) -> list[str]:
    return list(field_lines((str(name),), value, {}, indent))


def _line_start(text: str, at: int) -> int:
    return text.rfind("\n", 0, at) + 1


def _line_end(text: str, at: int) -> int:
    """Return where the line of an index ends, in front of its break."""
    end = text.find("\n", at)
    return len(text) if end < 0 else end
