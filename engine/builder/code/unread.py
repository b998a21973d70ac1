"""Unread variables: the local variables and the parameters of a function that only messages read."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import cache

from engine.builder.code import bodies, catalogue, following, harmless, messages, trees
from engine.builder.code.bindings import FunctionLike, Scope
from engine.builder.code.following import Target

_REFLECTING = frozenset({"locals", "vars", "eval", "exec", "globals", "dir"})
_CALLING = frozenset({ast.Call, ast.Raise, ast.Assert})
_ASSIGNING = frozenset({ast.Assign, ast.AnnAssign})
_SPECIAL = frozenset({
    ast.Try, ast.TryStar, ast.With, ast.AsyncWith, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef,
    ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp,
})  # fmt: skip


class Variables:
    """The variables of a function that its code reads outside of messages."""

    def __init__(self, function: FunctionLike, scope: Scope, *, follows: bool = True) -> None:
        """With `follows`, an argument that the called function only puts into messages is not read."""
        self._follows = follows
        self._read: set[str] = set()
        self._containers: set[str] = set()
        self._assigned: list[tuple[str, ast.expr]] = []
        body = function.body if isinstance(function.body, list) else [function.body]
        self._all(body, scope, tried=False)
        while more := [each for each in self._assigned if each[0] in self._read]:
            self._assigned = [each for each in self._assigned if each[0] not in self._read]
            self._all((value for _, value in more), scope, tried=True)
        if not self._read.isdisjoint(_REFLECTING):
            self._assigned = []
        self._unread = {id(value) for _, value in self._assigned}
        self._containers |= bodies.own_variables(function, scope) if isinstance(function, ast.FunctionDef) else set()

    def reads(self, name: str) -> bool:
        """Say whether code outside of messages reads a variable."""
        return name in self._read

    def shares(self, name: str) -> bool:
        """Say whether code outside of messages reads a variable that may be an iterator."""
        return name in self._read and name not in self._containers

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
            elif kind is ast.Attribute or kind is ast.Subscript:
                self._part(node, scope, tried=tried)  # type: ignore[arg-type]
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
            return isinstance(node, ast.Call) and self._is_wording(node, scope, tried=tried)
        kept = [*harmless.residue(message.words, scope).calls, *message.kept]
        self._all([*kept, *([node.test] if isinstance(node, ast.Assert) else [])], scope, tried=tried)
        return True

    def _is_wording(self, node: ast.Call, scope: Scope, *, tried: bool) -> bool:
        words = worded(node, scope) if self._follows else ()
        if not words:
            return False
        rest = (each for each in trees.children(node) if each not in words and not _holds(each, words))
        self._all((*rest, *harmless.residue(words, scope).calls), scope, tried=tried)
        return True

    def _part(self, node: ast.Attribute | ast.Subscript, scope: Scope, *, tried: bool) -> None:
        """Note that a variable has attributes or items: it is no iterator."""
        plain = isinstance(node, ast.Subscript) or node.attr not in catalogue.READING
        if isinstance(node.value, ast.Name) and plain:
            self._containers.add(node.value.id)
        self._all(trees.children(node), scope, tried=tried)

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


def worded(call: ast.Call, scope: Scope) -> tuple[ast.expr, ...]:
    """Return the arguments of a call that the called function only puts into messages."""
    target = following.meaning(call.func, scope)
    parameters = _worded_parameters(target) if target is not None else {}
    if not parameters or any(isinstance(each, ast.Starred) for each in call.args):
        return ()
    by_place = [each for place, each in enumerate(call.args) if place in parameters.values()]
    by_name = [each.value for each in call.keywords if each.arg in parameters]
    return (*by_place, *by_name)


def forget() -> None:
    """Forget the parameters of all functions."""
    _worded_parameters.cache_clear()


@cache
def _worded_parameters(target: Target) -> dict[str, int]:
    """Return the parameters that a function only puts into messages: name and place, -1 for keyword-only parameters."""
    place = following.definition(target)
    if place is None or not isinstance(place.node, ast.FunctionDef):
        return {}
    function, scope = place.node, place.source.scope
    marks = [following.meaning(each, scope) for each in function.decorator_list]
    if any(mark is None or mark.dotted != "contextlib.contextmanager" for mark in marks):
        return {}
    variables = Variables(function, scope.function(function), follows=False)
    arguments = function.args
    places = {each.arg: number for number, each in enumerate((*arguments.posonlyargs, *arguments.args))}
    places |= {each.arg: -1 for each in arguments.kwonlyargs}
    return {name: number for name, number in places.items() if not variables.reads(name)}


def _holds(node: ast.AST, words: tuple[ast.expr, ...]) -> bool:
    return isinstance(node, ast.keyword) and node.value in words
