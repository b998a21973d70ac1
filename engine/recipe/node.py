"""A YAML value with the place of each of its parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.text.places import Position

Scalar = str | int | float | bool | None
Path = Sequence[str | int]
"""The way from the root of a document to one of its values: keys of mappings, indices of lists."""


@dataclass(frozen=True, slots=True)
class Node:
    """A scalar, a list or a mapping; `at` is where it starts, `keys` where each key of a mapping stands.

    `written` is a scalar as it was typed; `size` counts this value and all below it.
    """

    value: Scalar | Sequence[Node] | Mapping[str, Node]
    at: Position
    keys: Mapping[str, Position] = field(default_factory=dict)
    written: str = ""
    size: int = 1

    @property
    def mapping(self) -> Mapping[str, Node] | None:
        """The entries of a mapping; None for anything else."""
        return self.value if isinstance(self.value, Mapping) else None

    @property
    def items(self) -> Sequence[Node] | None:
        """The items of a list; None for anything else."""
        value = self.value
        return value if isinstance(value, Sequence) and not isinstance(value, str) else None

    def child(self, segment: str | int) -> Node | None:
        """Return the value under a key or an index (`"0"` is one, too); None where there is none."""
        if self.mapping is not None:
            return self.mapping.get(str(segment))
        if self.items is not None and str(segment).isdecimal() and int(segment) < len(self.items):
            return self.items[int(segment)]
        return None

    def find(self, path: Path) -> Node | None:
        """Return the value at `path`; None where there is none."""
        node: Node | None = self
        for segment in path:
            node = node.child(segment) if node else None
        return node


def plain(node: Node) -> Any:
    """Return the value without its places: dicts, lists and scalars."""
    if node.mapping is not None:
        return {key: plain(child) for key, child in node.mapping.items()}
    if node.items is not None:
        return [plain(child) for child in node.items]
    return node.value


def mapping_node(entries: Mapping[str, Node], keys: Mapping[str, Position], at: Position) -> Node:
    """Return a mapping of `entries`."""
    return Node(entries, at, keys, size=1 + sum(child.size for child in entries.values()))


def list_node(items: Sequence[Node], at: Position) -> Node:
    """Return a list of `items`."""
    return Node(tuple(items), at, size=1 + sum(child.size for child in items))


def merged(parent: Node, child: Node) -> Node:
    """Return `parent` with what `child` says laid over it: mappings merge, anything else replaces.

    A `null` in the child takes away what the parent says. Every part keeps the place where it was written.
    """
    if parent.mapping is None or child.mapping is None:
        return child
    entries, keys = dict(parent.mapping), dict(parent.keys)
    for key, value in child.mapping.items():
        inherited = entries.get(key)
        if inherited is not None and value.value is None:
            del entries[key], keys[key]
            continue
        entries[key] = value if inherited is None else merged(inherited, value)
        keys[key] = child.keys[key]
    return mapping_node(entries, keys, child.at)


def without(node: Node, *names: str) -> Node:
    """Return a mapping without these keys."""
    entries = {key: child for key, child in (node.mapping or {}).items() if key not in names}
    return mapping_node(entries, {key: node.keys[key] for key in entries}, node.at)


def put(node: Node | None, path: Path, value: Node) -> Node:
    """Return `node` with `value` at `path`, mappings on the way made as needed; `null` removes.

    Raises LookupError where the way leads through a scalar or past the end of a list.
    """
    if not path:
        return value
    head, rest = path[0], path[1:]
    if node is not None and node.items is not None:
        old = node.child(head)
        if old is None:
            raise LookupError(f"there is no item {head}: the list has {len(node.items)}, counted from 0")
        items = list(node.items)
        items[int(head)] = put(old, rest, value)
        return list_node(items, node.at)
    if node is not None and node.mapping is None and node.value is not None:
        raise LookupError(f"{head!r} is below a plain value")
    if node is None and str(head).isdecimal():
        raise LookupError(f"there is no list to have an item {head}")
    empty = Node({}, value.at)
    base = node if node is not None and node.mapping is not None else empty
    entries, keys = dict(base.mapping or {}), dict(base.keys)
    if not rest and value.value is None:
        entries.pop(str(head), None)
    else:
        entries[str(head)] = put(entries.get(str(head)), rest, value)
        if not rest or str(head) not in keys:
            keys[str(head)] = value.at
    return mapping_node(entries, keys, base.at)


def place(root: Node, path: Path) -> Position | None:
    """Return where the value at `path` is said: a scalar's or a `[...]`'s own place, a block's key."""
    node = root.find(path)
    if node is None or not path:
        return node.at if node else None
    parent = root.find(path[:-1])
    key = parent.keys.get(str(path[-1])) if parent else None
    starts_below = key is not None and (node.at.file, node.at.line) != (key.file, key.line)
    # The block under `target:` starts a line below the word that a reader looks for.
    if key is not None and starts_below and (node.mapping is not None or node.items is not None):
        return key
    return node.at


def walk_down(root: Node, path: Path) -> Iterator[str | int]:
    """Yield the segments of `path` that exist in `root`, without those that only the schema knows.

    A schema's way has names that the text lacks: a number stands for `{min, opt, max}`, axes stand beside `budget`.
    """
    node = root
    for segment in path:
        found = node.child(segment)
        if found is None and segment in _RANGE and node.items is not None:
            segment = _RANGE.index(str(segment))  # noqa: PLW2901  [1, 16, 128] is {min: 1, opt: 16, max: 128}
            found = node.child(segment)
        if found is not None:
            node = found
            yield segment


_RANGE = ("min", "opt", "max")
