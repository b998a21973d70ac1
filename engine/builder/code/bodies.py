"""Bodies: whether the body of a function changes nothing but the function's own variables."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from functools import cached_property

from engine.builder.code import catalogue, trees
from engine.builder.code.bindings import Scope

_MAKING = frozenset({"list", "dict", "set", "sorted", "tuple", "str", "int", "float", "len", "sum"})
_FRESH = (
    ast.Constant, ast.JoinedStr, ast.List, ast.Dict, ast.Set, ast.Tuple, ast.ListComp, ast.SetComp, ast.DictComp,
    ast.BinOp, ast.Compare,
)  # fmt: skip
"""Expressions that make a new object."""


def changes_nothing(function: ast.FunctionDef, scope: Scope, is_harmless: Callable[[ast.expr], bool]) -> bool:
    """Say whether a function changes nothing but its own variables, given which expressions are harmless."""
    return _Body(function, scope, is_harmless).all(function.body)


class _Body:
    def __init__(self, function: ast.FunctionDef, scope: Scope, is_harmless: Callable[[ast.expr], bool]) -> None:
        self._function, self._scope, self._is_harmless = function, scope, is_harmless

    def all(self, body: Iterable[ast.stmt]) -> bool:
        """Say whether all statements change nothing but own variables."""
        return all(self._statement(each) for each in body)

    def _statement(self, node: ast.stmt) -> bool:
        match node:
            case ast.Pass() | ast.Break() | ast.Continue():
                return True
            case ast.Expr(value=value):
                return self._expression(value)
            case ast.If(test=value, body=body, orelse=other) | ast.While(test=value, body=body, orelse=other):
                return self._is_harmless(value) and self.all((*body, *other))
            case ast.For(target=target, iter=value, body=body, orelse=other):
                return self._is_own(target) and self._is_harmless(value) and self.all((*body, *other))
        return self._simple(node)

    def _simple(self, node: ast.stmt) -> bool:
        targets: list[ast.expr] = []
        match node:
            case ast.Return(value=value) | ast.Raise(exc=value):
                pass
            case ast.Assign(value=value):
                targets = node.targets
            case ast.AnnAssign(target=ast.Name() as target, value=value):
                targets = [target]
            case ast.AugAssign(target=ast.Name(id=name), value=value) if name in self._own:
                pass
            case _:
                return False
        return all(self._is_own(each) for each in targets) and (value is None or self._is_harmless(value))

    def _expression(self, node: ast.expr) -> bool:
        match node:
            case ast.Yield(value=value):
                return value is None or self._is_harmless(value)
            case ast.YieldFrom(value=value):
                return self._is_harmless(value)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method)):
                if method in catalogue.GROWING and name in self._own:
                    values = (*node.args, *(keyword.value for keyword in node.keywords))
                    return all(self._is_harmless(each) for each in values)
        return self._is_harmless(node)

    def _is_own(self, target: ast.expr) -> bool:
        if isinstance(target, ast.Tuple | ast.List):
            return all(self._is_own(each) for each in target.elts)
        return isinstance(target, ast.Name) and self._scope.here.get(target.id) == ()

    @cached_property
    def _own(self) -> frozenset[str]:
        return own_variables(self._function, self._scope)


def own_variables(function: ast.FunctionDef, scope: Scope) -> frozenset[str]:
    """Return the variables that hold only objects that the function itself makes, and that nothing else has."""
    arguments = function.args
    lone = [each for each in (arguments.vararg, arguments.kwarg) if each is not None]
    foreign = {each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *lone)}
    for node in trees.walk(function):
        match node:
            case ast.Assign(targets=targets, value=value):
                foreign.update(() if _is_fresh(value) else _names(targets))
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                foreign.update(() if _is_fresh(value) else _names([target]))
            case ast.For(target=target) | ast.comprehension(target=target) | ast.NamedExpr(target=target):
                foreign.update(_names([target]))
            case ast.withitem(optional_vars=ast.expr() as target):
                foreign.update(_names([target]))
    return frozenset(name for name, targets in scope.here.items() if targets == () and name not in foreign)


def _names(targets: Iterable[ast.expr]) -> set[str]:
    return {each.id for target in targets for each in trees.walk(target) if isinstance(each, ast.Name)}


def _is_fresh(value: ast.expr) -> bool:
    """Say whether an expression makes a new object that nothing else has."""
    match value:
        case ast.Call(func=ast.Name(id=name)):
            return name in _MAKING
        case ast.IfExp(body=body, orelse=other):
            return _is_fresh(body) and _is_fresh(other)
    return isinstance(value, _FRESH)
