"""Draft: the fields of a recipe that is about to be written, their comments, and the YAML text that they become."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

SCHEMA = "recipe.schema.json"
"""The name of the file beside a recipe that holds the JSON Schema for editors."""
ORDER = (
    "name", "model", "target", "precision", "quantize", "calibrate", "preprocess", "postprocess", "profiles",
    "generate", "validate", "bench", "package",
)  # fmt: skip
"""The sections of a recipe in the order in which they are written."""
_WIDTH = 110
_BEHIND = 46
"""The column of a comment that stands behind a field."""
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./+-]*")
_WORDS = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}
"""Plain words that YAML reads as something else than text."""


@dataclass(frozen=True)
class Unmapped:
    """A setting of another tool that no field of a recipe stands for, and the reason."""

    setting: str
    reason: str

    def __str__(self) -> str:
        return f"{self.setting}: {self.reason}"


@dataclass(frozen=True)
class SampleFile:
    """A file of samples, or a folder: its name beside the recipe, and its content, of a folder by names of files."""

    name: str
    content: bytes | Mapping[str, bytes]
    lines: str = ""
    """The file in the folder that the recipe names, which names the others; empty where it names the whole."""

    def files(self) -> dict[str, bytes]:
        """Return the path of each file, relative to the recipe, and its bytes."""
        if isinstance(self.content, bytes):
            return {self.name: self.content}
        return {f"{self.name}/{name}": content for name, content in self.content.items()}


@dataclass
class Draft:
    """A recipe as nested mappings; comments by dotted path, `about` at the top, `unmapped` at the end."""

    fields: dict[str, Any]
    about: list[str] = field(default_factory=list)
    comments: dict[str, str] = field(default_factory=dict)
    unmapped: list[Unmapped] = field(default_factory=list)
    samples: SampleFile | None = None
    guesses: list[str] = field(default_factory=list)
    """What no file of the model says: `recipe new` prints these lines."""

    def put(self, path: str, value: Any, comment: str = "") -> None:
        """Set the field at a dotted path, and its comment."""
        *parents, last = path.split(".")
        place = self.fields
        for parent in parents:
            place = place.setdefault(parent, {})
        place[last] = value
        if comment:
            self.comments[path] = comment


def recipe_text(draft: Draft) -> str:
    """Return the text of a draft's recipe, which begins with the modeline for editors."""
    lines = [f"# yaml-language-server: $schema={SCHEMA}"]
    for about in draft.about:
        lines += comment_lines(about)
    names = sorted(draft.fields, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))
    for name in names:
        lines += ["", *field_lines((name,), draft.fields[name], draft.comments)]
    if draft.unmapped:
        lines += ["", "# No field of a recipe stands for:"]
        for each in draft.unmapped:
            lines += comment_lines(f"- {each}", hanging="  ")
    return "\n".join(lines) + "\n"


def scalar(value: object) -> str:
    """Return a text, number, truth value or null as YAML writes it."""
    if isinstance(value, str):
        plain = _PLAIN.fullmatch(value) and value.lower() not in _WORDS
        return value if plain else json.dumps(value, ensure_ascii=False)
    return json.dumps(value)


def flow(value: object) -> str:
    """Return a value on one line: `{batch: [1, 8, 32]}`."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{scalar(name)}: {flow(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(flow, value)) + "]"
    return scalar(value)


def field_lines(path: tuple[str, ...], value: Any, comments: Mapping[str, str], indent: int = 0) -> Iterator[str]:
    """Yield the lines of a field; a mapping at the top, or one that is long or has comments, takes several lines."""
    margin, name, dotted = " " * indent, scalar(path[-1]), ".".join(path)
    comment, line = _cleaned(comments.get(dotted, "")), f"{margin}{name}: {flow(value)}"
    inner = any(each.startswith(f"{dotted}.") for each in comments)
    is_long = len(line) > _WIDTH
    block = isinstance(value, Mapping) and bool(value) and (indent == 0 or inner or is_long)
    listed = isinstance(value, list) and bool(value) and (is_long or any(isinstance(each, Mapping) for each in value))
    if not block and not listed and comment and len(f"{line:<{_BEHIND}}  # {comment}") <= _WIDTH:
        yield f"{line:<{_BEHIND}}  # {comment}"
        return
    yield from (f"{margin}{each}" for each in comment_lines(comment) if comment)
    if block:
        yield f"{margin}{name}:"
        for key, each in value.items():
            yield from field_lines((*path, key), each, comments, indent + 2)
    elif listed:
        yield f"{margin}{name}:"
        yield from (f"{margin}  - {flow(each)}" for each in value)
    else:
        yield line


def comment_lines(text: str, hanging: str = "") -> list[str]:
    """Return a text as lines of comments."""
    return [
        f"# {line}"
        for line in textwrap.wrap(_cleaned(text), _WIDTH - 2, subsequent_indent=hanging, break_on_hyphens=False) or [""]
    ]


def _cleaned(text: str) -> str:
    """Return a text for a comment: control characters and ends of lines become blanks."""
    return re.sub(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+", " ", text)
