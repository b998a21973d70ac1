"""Own fields: what a recipe's own text must say, so that it and its parents' fields together are what is asked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

Change = tuple[tuple[str | int, ...], Any]
"""The path of a field in a recipe's own text, and its new value."""
GONE = object()
"""The value of a field that a text has not; None is YAML's null, by which a child removes a field of its parent."""


def difference(own: Mapping[str, Any], inherited: Any, target: Mapping[str, Any]) -> Change | None:
    """Return the first change that `own` needs, so that it and its parents' fields together are `target`."""
    theirs = inherited if isinstance(inherited, Mapping) else {}
    for key in (*own, *(key for key in theirs if key not in own)):
        if key not in target and (key not in theirs or own.get(key, GONE) is not None):
            return (key,), None if key in theirs else GONE
    for key, want in target.items():
        mine, other = own.get(key, GONE), theirs.get(key, GONE)
        if _same(_merged(other, mine), want):
            continue
        inner: Change | None = None
        if isinstance(mine, Mapping) and mine and isinstance(want, Mapping):
            inner = difference(mine, other, want)
        elif isinstance(mine, list) and isinstance(want, list) and len(mine) == len(want):
            inner = _difference_of_items(mine, want)
        if inner is not None:
            return (key, *inner[0]), inner[1]
        return (key,), _over(other, want)
    return None


def _difference_of_items(own: list[Any], target: list[Any]) -> Change:
    index = next(index for index, pair in enumerate(zip(own, target, strict=True)) if not _same(*pair))
    mine, want = own[index], target[index]
    if isinstance(mine, Mapping) and mine and isinstance(want, Mapping) and (inner := difference(mine, {}, want)):
        return (index, *inner[0]), inner[1]
    return (index,), want


def _merged(parent: Any, child: Any) -> Any:
    """Return a value of a parent merged with that of a child, as `recipe/node.py` merges nodes."""
    if child is GONE or parent is GONE:
        return parent if child is GONE else child
    if child is None:
        return GONE
    if not (isinstance(parent, Mapping) and isinstance(child, Mapping)):
        return child
    both = {key: _merged(parent.get(key, GONE), child.get(key, GONE)) for key in (*parent, *child)}
    return {key: value for key, value in both.items() if value is not GONE}


def _over(parent: Any, want: Any) -> Any:
    """Return what a child says so that it and its parent's value together are `want`."""
    if not (isinstance(parent, Mapping) and isinstance(want, Mapping)):
        return want
    said = {
        key: _over(parent.get(key, GONE), each) for key, each in want.items() if not _same(parent.get(key, GONE), each)
    }
    return {**said, **{key: None for key in parent if key not in want}}


def _same(one: Any, other: Any) -> bool:
    """Whether two values are equal; 1, 1.0 and true are not."""
    return one is other if GONE in (one, other) else _json(one) == _json(other)


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)
