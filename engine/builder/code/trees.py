"""Trees: fast walks over syntax trees, which the analysis of code does many times."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

_LEAVES = frozenset({ast.Constant, ast.Pass, ast.Break, ast.Continue, ast.Global, ast.Nonlocal, ast.alias})
"""Types of nodes that contain no further nodes."""
_WORTHLESS = frozenset({ast.Load, ast.Store, ast.Del})


def children(node: ast.AST) -> list[Any]:
    """Return the nodes directly below a node, without marks such as `Load`, in the order of the text."""
    kind = type(node)
    if kind in _LEAVES or kind is ast.Name:
        return []
    below: list[ast.AST] = []
    fields = node.__dict__
    for name in node._fields:
        value = fields.get(name)
        if type(value) is list:
            below += [each for each in value if isinstance(each, ast.AST)]
        elif isinstance(value, ast.AST) and type(value) not in _WORTHLESS:
            below.append(value)
    return below


def walk(node: ast.AST) -> Iterator[Any]:
    """Yield a node and all nodes below it, in any order."""
    todo = [node]
    while todo:
        node = todo.pop()
        yield node
        todo += children(node)
