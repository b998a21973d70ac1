"""Hierarchy: classes of exceptions, and which handlers may catch which exceptions."""

from __future__ import annotations

import ast
import builtins
from functools import cache

from engine.builder.code import following
from engine.builder.code.following import Origin, Target

_ROOT = Target(Origin.BUILTIN, "", ("BaseException",))


def catches(handler: tuple[Target, ...], raised: tuple[Target, ...]) -> bool:
    """Say whether a handler of some classes, or of all for (), may catch one of the exceptions that code raises."""
    return not handler or not raised or any(_is_kind_of(each, one) for each in raised for one in handler)


def is_exception(target: Target) -> bool:
    """Say whether a name stands for a class of exceptions."""
    line = _line(target)
    return line is not None and _ROOT in line


def forget() -> None:
    """Forget the classes, so that they are looked up again."""
    _line.cache_clear()


def _is_kind_of(raised: Target, caught: Target) -> bool:
    if Origin.LIBRARY in {raised.kind, caught.kind}:
        return True
    line = _line(raised)
    return line is None or caught in line


@cache
def _line(target: Target) -> frozenset[Target] | None:
    """Return a class with all classes above it; None where they are not known."""
    if target.kind is Origin.BUILTIN:
        known = getattr(builtins, target.words[0], None) if len(target.words) == 1 else None
        if not isinstance(known, type):
            return None
        return frozenset(Target(Origin.BUILTIN, "", (each.__name__,)) for each in known.__mro__)
    place = following.definition(target)
    if place is None or not isinstance(place.node, ast.ClassDef):
        return None
    line = {target}
    for base in place.node.bases:
        above = following.meaning(base, place.source.scope)
        further = None if above is None or above == target else _line(above)
        if further is None:
            return None
        line |= further
    return frozenset(line)
