"""Nodes: YAML values with the places of their parts, and the functions that merge and change nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from engine.runtimes import axes
from engine.text.places import Position

Scalar = str | int | float | bool | None
Path = Sequence[str | int]
"""The path from the root of a YAML document to a value: keys of mappings and indices of lists."""


class Node(NamedTuple):
    """A scalar, a list or a mapping of a YAML text.

    `at` is the place where the node starts in the text. `keys` maps each key of a mapping to the place of the key.
    `written` is the text of a scalar, as the user typed the text. `size` is the number of values in the node: the node
    itself and all values below the node.
    """

    value: Scalar | Sequence[Node] | Mapping[str, Node]
    at: Position
    keys: Mapping[str, Position] = {}
    written: str = ""
    size: int = 1

    @property
    def mapping(self) -> Mapping[str, Node] | None:
        """The entries of a node that is a mapping; None for a scalar or a list."""
        return self.value if isinstance(self.value, Mapping) else None

    @property
    def items(self) -> Sequence[Node] | None:
        """The items of a node that is a list; None for a scalar or a mapping."""
        value = self.value
        return None if value is None or isinstance(value, str | int | float | Mapping) else value

    def child(self, segment: str | int) -> Node | None:
        """Return the node under a key, or under an index of a list, which may be a text such as `"0"`; else None.

        The items of a list of three are `min`, `opt` and `max`, too, as in a profile's `[1, 8, 32]`.
        """
        if self.mapping is not None:
            return self.mapping.get(str(segment))
        index = _index(self.items or (), segment)
        return None if index is None or self.items is None else self.items[index]

    def find(self, path: Path) -> Node | None:
        """Return the node at `path`, or None if the document has no node at `path`."""
        node: Node | None = self
        for segment in path:
            node = node.child(segment) if node else None
        return node


_RANGE = ("min", "opt", "max")
"""The fields that the short form of a profile, [1, 16, 128], has as items."""


def _index(items: Sequence[Node], segment: str | int) -> int | None:
    """Return the index that a segment of a path means in a list; None for no item of the list."""
    if segment in _RANGE and len(items) == len(_RANGE):
        return _RANGE.index(str(segment))
    return int(segment) if str(segment).isdecimal() and int(segment) < len(items) else None


def plain(node: Node) -> Any:
    """Return the value of a node as dicts, lists and scalars, without places."""
    if node.mapping is not None:
        return {key: plain(child) for key, child in node.mapping.items()}
    if node.items is not None:
        return [plain(child) for child in node.items]
    return node.value


def mapping_node(entries: Mapping[str, Node], keys: Mapping[str, Position], at: Position) -> Node:
    """Return a YAML mapping as a Node, made of the mapping's entries and the places of its keys."""
    return Node(entries, at, keys, size=1 + sum(child.size for child in entries.values()))


def list_node(items: Sequence[Node], at: Position) -> Node:
    """Return a list of YAML as a Node, made of the items."""
    return Node(tuple(items), at, size=1 + sum(child.size for child in items))


def merged(parent: Node, child: Node) -> Node:
    """Return `parent` merged with `child`: mappings are merged, other values of the child replace those of the parent.

    If a field of the child is `null`, the merged recipe lacks that field of the parent. Each merged value keeps its
    place in the file that the value is from.
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
    """Return a mapping without the keys `names`."""
    entries = {key: child for key, child in (node.mapping or {}).items() if key not in names}
    return mapping_node(entries, {key: node.keys[key] for key in entries}, node.at)


def put(node: Node | None, path: Path, value: Node) -> Node:
    """Return a copy of `node` that has `value` at `path`. If `value` is null, the copy has no field at `path`.

    If mappings on the way to `path` are missing in `node`, the copy gets these mappings. Raises LookupError where
    `path` leads through a scalar or past the end of a list.
    """
    if not path:
        return value
    head, rest = path[0], path[1:]
    if node is not None and node.items is not None:
        index = _index(node.items, head)
        if index is None:
            raise LookupError(f"there is no item {head}: the list has {len(node.items)}, counted from 0")
        items = list(node.items)
        items[index] = put(items[index], rest, value)
        return list_node(items, node.at)
    if node is not None and node.mapping is None and node.value is not None:
        if head in _RANGE:
            raise LookupError(f"there is one size, and no {head}: write [min, opt, max] in its place")
        raise LookupError(f"a plain value has no field {head!r}")
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
    """Return the place that an error about the value at `path` shows, or None if `path` has no value.

    The place of a list or mapping that starts on a line below its key is the place of the key. The place of a scalar,
    or of a list or mapping on the line of its key, is the start of the value.
    """
    node = root.find(path)
    if node is None or not path:
        return node.at if node else None
    parent = root.find(path[:-1])
    key = parent.keys.get(str(path[-1])) if parent else None
    if key is None or (node.mapping is None and node.items is None):
        return node.at
    # The block of `target:` starts on the line below `target:`, and a reader looks for the word `target`.
    is_block = (node.at.file, node.at.line) != (key.file, key.line)
    return key if is_block else node.at


def walk_down(root: Node, path: Path) -> Iterator[str | int]:
    """Yield the segments of `path`, the path of a pydantic error, that exist in the YAML document `root`.

    Because of short forms, the path of a pydantic error can have segments that the YAML text lacks: `min`, `opt` or
    `max` where the text has a single number, `axes` where the text has axes beside `budget`, and `image[2]` where the
    text has the input `image`.
    """
    node = root
    for segment in path:
        index = _index(node.items or (), segment)
        existing = segment if index is None else index
        child = node.child(existing)
        if child is None and (name := axes.input_of(str(segment))):
            existing, child = name, node.child(name)
        if child is not None:
            node = child
            yield existing
