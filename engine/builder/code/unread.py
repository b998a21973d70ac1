"""Unread variables: the local variables of a function that only messages read."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from engine.builder.code import harmless, messages, trees
from engine.builder.code.bindings import FunctionLike, Scope

_REFLECTING = frozenset({"locals", "vars", "eval", "exec", "globals", "dir"})
_CALLING = frozenset({ast.Call, ast.Raise, ast.Assert})
_ASSIGNING = frozenset({ast.Assign, ast.AnnAssign})
_SPECIAL = frozenset({
    ast.Try, ast.TryStar, ast.With, ast.AsyncWith, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef,
    ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp,
})  # fmt: skip


class Variables:
    """The variables of a function that its code reads outside of messages."""

    def __init__(self, function: FunctionLike, scope: Scope) -> None:
        self._read: set[str] = set()
        self._assigned: list[tuple[str, ast.expr]] = []
        body = function.body if isinstance(function.body, list) else [function.body]
        self._all(body, scope, tried=False)
        while more := [each for each in self._assigned if each[0] in self._read]:
            self._assigned = [each for each in self._assigned if each[0] not in self._read]
            self._all((value for _, value in more), scope, tried=True)
        if not self._read.isdisjoint(_REFLECTING):
            self._assigned = []
        self._unread = {id(value) for _, value in self._assigned}

    def reads(self, name: str) -> bool:
        """Say whether code outside of messages reads a variable."""
        return name in self._read

    def is_unread(self, node: ast.stmt) -> bool:
        """Say whether a statement only gives a value to a variable that nothing but messages reads."""
        return isinstance(node, ast.Assign | ast.AnnAssign) and id(node.value) in self._unread

    def _all(self, nodes: Iterable[ast.AST], scope: Scope, *, tried: bool) -> None:
        """Note what some code reads; with `tried` True, a failure of the code may have effects, so all of it counts."""
        for node in nodes:
            kind = type(node)
            if isinstance(node, ast.Name):
                if not isinstance(node.ctx, ast.Store):
                    self._read.add(node.id)
            elif (kind in _CALLING and self._is_message(node, scope, tried=tried)) or (
                not tried and kind in _ASSIGNING and self._is_candidate(node, scope)
            ):
                continue
            elif kind in _SPECIAL:
                self._special(node, scope, tried=tried)
            else:
                self._all(trees.children(node), scope, tried=tried)

    def _is_message(self, node: ast.AST, scope: Scope, *, tried: bool) -> bool:
        if isinstance(node, ast.Call):
            message = messages.of_call(node, scope)
        elif isinstance(node, ast.Raise):
            message = messages.of_raise(node, scope)
        else:
            message = messages.of_assert(node) if isinstance(node, ast.Assert) else None
        if message is None:
            return False
        kept = [*harmless.residue(message.words, scope).calls, *message.kept]
        self._all([*kept, *([node.test] if isinstance(node, ast.Assert) else [])], scope, tried=tried)
        return True

    def _is_candidate(self, node: ast.AST, scope: Scope) -> bool:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                pass
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                pass
            case _:
                return False
        if scope.here.get(name) != () or not harmless.is_harmless(value, scope):
            return False
        self._assigned.append((name, value))
        return True

    def _special(self, node: ast.AST, scope: Scope, *, tried: bool) -> None:
        match node:
            case ast.Try() | ast.TryStar():
                self._all(node.body, scope, tried=tried or bool(node.handlers))
                self._all((*node.handlers, *node.orelse, *node.finalbody), scope, tried=tried)
            case ast.With() | ast.AsyncWith():  # a context manager may suppress exceptions
                self._all(trees.children(node), scope, tried=True)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                self._all(trees.children(node), scope.function(node), tried=True)
            case ast.ClassDef():
                self._all(trees.children(node), scope.class_body(node), tried=True)
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                self._all(trees.children(node), scope.comprehension(node), tried=tried)
