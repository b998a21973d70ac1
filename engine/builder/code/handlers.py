"""Handlers: the exceptions that code catches, and whose text it may read."""

from __future__ import annotations

import ast

from engine.builder.code import following, trees
from engine.builder.code.bindings import Scope
from engine.builder.code.following import Origin, Target

_EVERY = frozenset({"Exception", "BaseException"})


def classes(node: ast.ExceptHandler, scope: Scope) -> tuple[Target, ...]:
    """Return the classes of exceptions that a handler names; () where a handler may catch any exception.

    A library may turn an exception of other code into an exception of its own, so a class of a library stands for all.
    """
    named = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
    known: list[Target] = []
    for each in named:
        target = None if each is None else following.meaning(each, scope)
        if (
            target is None
            or target.kind is Origin.LIBRARY
            or (target.kind is Origin.BUILTIN and target.words[0] in _EVERY)
        ):
            return ()
        known.append(target)
    return tuple(known)


def reads_exception(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Say whether a method `__exit__` reads the exception that ends the `with` block."""
    if node.name not in {"__exit__", "__aexit__"}:
        return False
    arguments = node.args
    named = [each.arg for each in (*arguments.posonlyargs, *arguments.args)][2:3]
    named += [arguments.vararg.arg] if arguments.vararg is not None else []
    loads = (each.id for each in trees.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load))
    return any(name in named for name in loads)
