"""Harmless code: expressions that only compute a value, so that leaving them out changes nothing else."""

# A call is harmless only if it is known to be. The analysis assumes that harmless code does not fail, and that the
# special methods that Python calls by itself, such as `__str__`, have no effects.

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field

from engine.builder.code import bodies, catalogue, following, hierarchy, sources, trees
from engine.builder.code.bindings import Scope
from engine.builder.code.following import Origin, Target

_COMPREHENSIONS = frozenset({ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp})
_STOPPING = frozenset({ast.Await, ast.Yield, ast.YieldFrom})


@dataclass
class Residue:
    """The parts of expressions that may have effects."""

    calls: list[ast.expr] = field(default_factory=list)
    consumed: set[str] = field(default_factory=set)
    """The variables that the expressions iterate over; an iterator is consumed by this."""
    own: bool = False
    """Whether `:=` binds a variable that only this code has."""


def residue(nodes: Iterable[ast.AST], scope: Scope) -> Residue:
    """Return the parts of expressions that may have effects."""
    left = Residue()
    for node in nodes:
        _Judge().collect(node, scope, left)
    return left


def is_harmless(node: ast.AST, scope: Scope) -> bool:
    """Say whether evaluating an expression only computes a value."""
    return not residue((node,), scope).calls


def is_harmless_function(target: Target) -> bool:
    """Say whether calling a function of this project or of the package of a step only computes a value."""
    return _Judge().function(target)


class _Judge:
    """Judges calls; a function that calls itself is harmless if everything else in it is."""

    def __init__(self) -> None:
        self._trusted: set[Target] = set()

    def collect(self, node: ast.AST, scope: Scope, left: Residue) -> None:
        """Add the parts of an expression that may have effects."""
        kind = type(node)
        if kind is ast.Call:
            self._call(node, scope, left)  # type: ignore[arg-type]
        elif kind in _COMPREHENSIONS:
            self._comprehension(node, scope, left)  # type: ignore[arg-type]
        elif isinstance(node, ast.Lambda):
            parts = Residue(own=left.own)
            self.collect(node.body, scope.function(node), parts)
            left.calls += [node] if parts.calls else []
        elif isinstance(node, ast.expr) and (kind in _STOPPING or (isinstance(node, ast.NamedExpr) and not left.own)):
            left.calls.append(node)
        else:
            if isinstance(node, ast.Starred) and isinstance(node.value, ast.Name):
                left.consumed.add(node.value.id)
            for each in trees.children(node):
                self.collect(each, scope, left)

    def function(self, target: Target) -> bool:
        """Say whether calling a function only computes a value."""
        if target in self._trusted:
            return True
        place = following.definition(target)
        if place is None or not isinstance(place.node, ast.FunctionDef):
            return False
        source, function = place.source, place.node
        decorators = [following.meaning(each, source.scope) for each in function.decorator_list]
        if any(each is None or each.dotted not in catalogue.CACHING for each in decorators):
            return False
        self._trusted.add(target)
        scope = source.scope.function(function)
        if bodies.changes_nothing(function, scope, lambda node: self._is_harmless(node, scope)):
            return True
        self._trusted.discard(target)
        return False

    def _is_harmless(self, node: ast.expr, scope: Scope) -> bool:
        left = Residue(own=True)
        self.collect(node, scope, left)
        return not left.calls

    def _comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp, scope: Scope, left: Residue
    ) -> None:
        inner, parts = scope.comprehension(node), Residue(own=left.own)
        for each in trees.children(node):
            self.collect(each, inner, parts)
        iterated = (each.iter.id for each in node.generators if isinstance(each.iter, ast.Name))
        left.consumed.update(parts.consumed, iterated)
        left.calls += [node] if parts.calls else []

    def _call(self, node: ast.Call, scope: Scope, left: Residue) -> None:
        if not self._is_harmless_call(node, scope):
            left.calls.append(node)
            return
        arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
        if not isinstance(node.func, ast.Name) or node.func.id not in catalogue.KEEPING:
            left.consumed.update(each.id for each in arguments if isinstance(each, ast.Name))
        for each in (*([node.func.value] if isinstance(node.func, ast.Attribute) else []), *arguments):
            self.collect(each, scope, left)

    def _is_harmless_call(self, node: ast.Call, scope: Scope) -> bool:
        target = following.meaning(node.func, scope)
        if target is None:
            return isinstance(node.func, ast.Attribute) and _is_harmless_method(node.func.attr, node)
        if target.kind is Origin.BUILTIN:
            return _is_harmless_builtin(target, node)
        if target.kind is Origin.LIBRARY:
            return target.dotted in catalogue.FUNCTIONS or target.dotted.startswith(catalogue.LIBRARIES)
        if target.kind is Origin.FREE:
            return _is_pure(target.module) or hierarchy.is_exception(target)
        return self._is_harmless_here(target, node)

    def _is_harmless_here(self, target: Target, node: ast.Call) -> bool:
        """Say whether a call of code that counts is harmless."""
        if sources.is_unshaping(target.module, target.words):
            return True
        place = following.holder(target)
        if place is None:
            return False
        if len(target.words) > 1:
            plain = not isinstance(place.node, ast.FunctionDef | ast.ClassDef)
            return plain and _is_harmless_method(target.words[-1], node)
        if isinstance(place.node, ast.ClassDef):
            return hierarchy.is_exception(target) or _is_plain_data(place.node, place.source.scope)
        return self.function(target)


def _is_pure(module: str) -> bool:
    return any(module == room or module.startswith(f"{room}.") for room in catalogue.PURE_ROOMS)


def _is_harmless_builtin(target: Target, node: ast.Call) -> bool:
    first = target.words[0]
    if len(target.words) > 1:
        types = catalogue.KEEPING | catalogue.CONSUMING
        return first in types and target.words[1] in catalogue.METHODS | {"fromkeys", "maketrans"}
    if first == "next":  # an iterator that only this call has
        return bool(node.args) and isinstance(node.args[0], ast.GeneratorExp)
    return first in catalogue.KEEPING or first in catalogue.CONSUMING or hierarchy.is_exception(target)


def _is_harmless_method(name: str, node: ast.Call) -> bool:
    count = len(node.args) + len(node.keywords)
    return name in catalogue.METHODS and count >= catalogue.LEAST_ARGUMENTS.get(name, 0)


def _is_plain_data(node: ast.ClassDef, scope: Scope) -> bool:
    """Say whether making an object of a class only stores values: a dataclass or pydantic model without own code."""
    starting = {"__init__", "__new__", "__post_init__", "model_post_init"}
    if any(isinstance(each, ast.FunctionDef) and each.name in starting for each in node.body):
        return False
    calls = [each.func if isinstance(each, ast.Call) else each for each in node.decorator_list]
    marks = [following.meaning(each, scope) for each in calls]
    bases = [following.meaning(each, scope) for each in node.bases]
    if not all(base is not None and _is_plain_base(base) for base in bases):
        return False
    return bool(marks or bases) and all(mark is not None and mark.dotted == "dataclasses.dataclass" for mark in marks)


def _is_plain_base(base: Target) -> bool:
    if base.dotted in catalogue.DATA_BASES:
        return True
    place = following.definition(base)
    return place is not None and isinstance(place.node, ast.ClassDef) and _is_plain_data(place.node, place.source.scope)
