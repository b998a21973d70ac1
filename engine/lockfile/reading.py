"""Read the YAML text of a lock into mappings and lists of texts; every error has a position in the file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from engine.errors import RecipeError
from engine.recipe.text import shown
from engine.recipe.yaml_text import LOADER
from engine.text import suggestions
from engine.text.places import Position, Text

_CONFLICT = re.compile(r"<{7}|={7}$|>{7}|\|{7}")
_ANEW = "take back the edit (`git checkout` brings the lock back), or delete the lock and write it anew: `recipe lock`"
_ONE_SIDE = "take one side of it (`git checkout --ours` or `--theirs`), then `recipe lock` writes what is true here"
EDITED = (
    "take back the edit, or take one side of the merge (`git checkout`), or delete the lock; then run `recipe lock`"
)

Node = Any
"""A node of PyYAML's tree; PyYAML ships no type hints."""


class Reader:
    """A reader of the YAML tree of a lock.

    Every YAML scalar is read as a text, because the version 1.10 must not become the number 1.1.
    """

    def __init__(self, text: Text, *, end: str) -> None:
        self.text = text
        self._refuse_conflict()
        self._refuse_cut(end)
        self.root = self._tree()
        self._seen: set[int] = set()

    def error(self, node: Node, what: str, hint: str = _ANEW) -> RecipeError:
        """Return a RecipeError with the position of a YAML node."""
        return RecipeError(what, self.text.marked(node.start_mark), hint=hint)

    def entries(self, node: Node | None) -> dict[str, Node]:
        """Return the values of a YAML mapping by their keys; {} for None.

        Raises RecipeError for a node that is no mapping.
        """
        if node is None:
            return {}
        if not isinstance(node, yaml.MappingNode):
            raise self.error(node, "a mapping is meant here")
        self._refuse_alias(node)
        values: dict[str, Node] = {}
        for key, value in node.value:
            name = self.text_of(key)
            if name in values:
                raise self.error(key, f"{shown(name)} is there twice")
            values[name] = value
        return values

    def fields(self, node: Node, *known: str) -> dict[str, Node]:
        """Return the values of a YAML mapping by their keys.

        Raises RecipeError if the mapping has a key that is not in `known`.
        """
        values = self.entries(node)
        for (key, _), name in zip(node.value, values, strict=True):
            if name not in known:
                raise self.error(key, f"no lock has a field {shown(name)!r} here", suggestions.hint(name, known))
        return values

    def items(self, node: Node | None) -> Sequence[Node]:
        """Return the items of a list; () for None. Raises RecipeError for a node that is no list."""
        if node is None:
            return ()
        if not isinstance(node, yaml.SequenceNode):
            raise self.error(node, "a list is meant here")
        self._refuse_alias(node)
        return list(node.value)

    def rows(self, node: Node | None, form: re.Pattern[str] | None = None) -> dict[str, str]:
        """Return a YAML mapping of texts by their keys; {} for None.

        Raises RecipeError for a text that does not match the pattern `form`.
        """
        return {name: self.text_of(value, form) for name, value in self.entries(node).items()}

    def text_of(self, node: Node, form: re.Pattern[str] | None = None) -> str:
        """Return the text of a YAML scalar.

        Raises RecipeError for a node that is no scalar, or for a text that does not match the pattern `form`.
        """
        if not isinstance(node, yaml.ScalarNode):
            raise self.error(node, "a text is meant here")
        value = str(node.value)
        if form is not None and not form.fullmatch(value):
            raise self.error(node, f"{shown(value)!r} is no digest: hexadecimal digits are meant")
        return value

    def one_of(self, fields: Mapping[str, Node], name: str, *values: str) -> str:
        """Return the value of the field `name`. Raises RecipeError unless it exists and has one of the values."""
        if name not in fields:
            raise self.error(self.root, f"this is no lock: it has no `{name}: {values[-1]}`")
        value = self.text_of(fields[name])
        if value not in values:
            what = f"this lock has the form {shown(value)}, and this version reads {' and '.join(values)}"
            raise self.error(fields[name], what, "use the version of recipe that wrote it, or write it anew")
        return value

    def _tree(self) -> Node:
        try:
            root = yaml.compose(self.text.content, Loader=LOADER)
        except (yaml.YAMLError, RecursionError) as error:
            problem = " ".join(str(getattr(error, "problem", error) or "unreadable").split())
            mark = getattr(error, "problem_mark", None)
            raise RecipeError(f"not valid YAML: {problem}", self.text.marked(mark), hint=_ANEW) from None
        if not isinstance(root, yaml.MappingNode):
            raise RecipeError("this is no lock", self.text.marked(None), hint=_ANEW)
        return root

    def _refuse_alias(self, node: Node) -> None:
        """Refuse YAML aliases: locks are written without aliases, and nested aliases can take exponential time."""
        if id(node) in self._seen:
            raise self.error(node, "an alias: no lock has any")
        self._seen.add(id(node))

    def _refuse_conflict(self) -> None:
        for number, line in enumerate(self.text.content.split("\n"), 1):
            if _CONFLICT.match(line.rstrip("\r")):
                raise RecipeError("a merge conflict is not resolved", Position(self.text, number, 1), hint=_ONE_SIDE)

    def _refuse_cut(self, end: str) -> None:
        lines = self.text.content.rstrip().split("\n")
        if lines[-1].strip() != end:
            what = f"the lock is cut off: its last line is not `{end}`"
            raise RecipeError(what, Position(self.text, len(lines), 1), hint=_ANEW)
