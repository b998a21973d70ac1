"""Definitions: the statements of a module that only give a name to something, so that they count only if it is used."""

# All other statements count wherever Python runs them, which is at the first import of their module.

from __future__ import annotations

import ast
from collections.abc import Iterable

from engine.builder.code import catalogue, following, harmless, sources
from engine.builder.code.bindings import Scope
from engine.builder.code.following import Origin, Target


def is_definition(node: ast.stmt, scope: Scope) -> bool:
    """Say whether a statement only gives a name to a function, a class or a value, with no other effect."""
    values: list[ast.expr | None] = []
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            if not _are_plain(node.decorator_list, scope):
                return False
            values = [*node.args.defaults, *node.args.kw_defaults]
        case ast.ClassDef():
            return _is_plain_class(node, scope)
        case ast.Assign(targets=targets, value=value):
            if not all(isinstance(each, ast.Name) for each in targets):
                return False
            values = [value]
        case ast.AnnAssign(target=ast.Name(), value=value):
            values = [value]
        case ast.ImportFrom(names=[ast.alias(name="*")]):
            return False
        case ast.Expr(value=ast.Constant()) | ast.Pass() | ast.Import() | ast.ImportFrom():
            pass
        case _:
            return type(node).__name__ == "TypeAlias"
    return all(value is None or harmless.is_harmless(value, scope) for value in values)


def _are_plain(decorators: Iterable[ast.expr], scope: Scope) -> bool:
    for each in decorators:
        function = each.func if isinstance(each, ast.Call) else each
        if isinstance(function, ast.Attribute) and function.attr in {"setter", "deleter", "getter"}:
            continue
        target = following.meaning(function, scope)
        if target is None or target.dotted not in catalogue.DECORATORS:
            return False
    return True


def _is_plain_class(node: ast.ClassDef, scope: Scope) -> bool:
    if not _are_plain(node.decorator_list, scope) or any(each.arg == "metaclass" for each in node.keywords):
        return False
    inner = scope.class_body(node)
    if not all(is_definition(each, inner) for each in node.body):
        return False
    return all(_is_plain_base(base, scope) for base in node.bases)


def _is_plain_base(node: ast.expr, scope: Scope) -> bool:
    """Say whether a base class does nothing when Python defines a class that is derived from it."""
    if isinstance(node, ast.Subscript):
        return _is_plain_base(node.value, scope)
    target = following.meaning(node, scope)
    return target is not None and _registers_nothing(target)


def _registers_nothing(target: Target) -> bool:
    if target.kind is Origin.LIBRARY:
        return target.dotted in catalogue.BASES
    if target.kind is not Origin.COUNTED:  # other code of this project is part of no key
        return True
    place = following.definition(target)
    if place is None or not isinstance(place.node, ast.ClassDef):
        return False
    node = place.node
    if any(isinstance(each, ast.FunctionDef) and each.name == "__init_subclass__" for each in node.body):
        return False
    if any(each.arg == "metaclass" for each in node.keywords):
        return False
    return all(_is_plain_base(base, place.source.scope) for base in node.bases)


def reads_nobody(source: sources.ModuleSource, name: str) -> bool:
    """Say whether no code of a module reads a name that the module binds."""
    return name not in source.loads and name != "__all__"
