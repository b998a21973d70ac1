"""Messages: the parts of code that only word an error, a line of the log, a warning or a description for people."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from engine.builder.code import following, harmless, hierarchy, sources, trees
from engine.builder.code.bindings import Scope
from engine.builder.code.following import Origin, Target

_LEVELS = frozenset({"debug", "info", "warning", "warn", "error", "critical", "exception", "log"})
_STREAMS = frozenset({"sys.stdout", "sys.stderr"})


class Channel(StrEnum):
    """Where a message goes."""

    ERROR = "error"
    PRINT = "print"
    WARNING = "warning"
    LOG = "log"
    ARGUMENT = "argument"
    """An argument that the called function only puts into messages of any channel."""
    DESCRIPTION = "description"
    """Code that is declared to shape no output."""


@dataclass(frozen=True)
class Message:
    """The expressions that word a message, and the classes of the exceptions that have the message as their text."""

    channel: Channel
    words: tuple[ast.expr, ...]
    classes: tuple[Target, ...] = ()
    kept: tuple[ast.expr, ...] = ()
    """Expressions that count although they stand among the words, for example the category of a warning."""


def of_call(node: ast.Call, scope: Scope) -> Message | None:
    """Return the message that a call prints, logs or describes; None for every other call."""
    target = following.meaning(node.func, scope)
    if target is None:
        return None
    words = (*node.args, *(keyword.value for keyword in node.keywords))
    if target.kind in {Origin.COUNTED, Origin.FREE} and sources.is_unshaping(target.module, target.words):
        return Message(Channel.DESCRIPTION, words)
    if target == Target(Origin.BUILTIN, "", ("print",)):
        return _print(node, scope, words)
    if target.dotted == "warnings.warn" and target.kind is Origin.LIBRARY:
        kept = (*node.args[1:2], *(keyword.value for keyword in node.keywords if keyword.arg == "category"))
        return Message(Channel.WARNING, tuple(each for each in words if each not in kept), kept=kept)
    if _is_logging(target):
        return Message(Channel.LOG, words)
    return None


def of_raise(node: ast.Raise, scope: Scope) -> Message | None:
    """Return the message of a `raise` statement; None if the exception is not made in the statement."""
    if not isinstance(node.exc, ast.Call):
        return None
    target = following.meaning(node.exc.func, scope)
    if target is None:
        return None
    if target.kind is Origin.LIBRARY or hierarchy.is_exception(target):
        classes: tuple[Target, ...] | None = (target,)
    else:
        classes = _raised_by(target, ())
    if classes is None:
        return None
    cause = () if node.cause is None or isinstance(node.cause, ast.Name | ast.Constant) else (node.cause,)
    words = (*node.exc.args, *(keyword.value for keyword in node.exc.keywords), *cause)
    return Message(Channel.ERROR, words, classes)


def of_assert(node: ast.Assert) -> Message | None:
    """Return the message of an `assert` statement; None for a statement without a message."""
    if node.msg is None:
        return None
    return Message(Channel.ERROR, (node.msg,), (Target(Origin.BUILTIN, "", ("AssertionError",)),))


def _print(node: ast.Call, scope: Scope, words: tuple[ast.expr, ...]) -> Message | None:
    """Return the message of a call of `print`; None for a line that goes to a file, or to a program that reads it."""
    for keyword in node.keywords:
        if keyword.arg is None:
            return None
        if keyword.arg == "file":
            stream = following.meaning(keyword.value, scope)
            if stream is None or stream.dotted not in _STREAMS:
                return None
    source = sources.of(scope.module)
    return None if source is not None and source.is_program else Message(Channel.PRINT, words)


def _is_logging(target: Target) -> bool:
    if target.words[-1:] == () or target.words[-1] not in _LEVELS:
        return False
    if target.kind is Origin.LIBRARY:
        return target.module == "logging" or target.dotted.startswith("logging.")
    place = following.holder(target)
    if place is None or len(target.words) != 2 or not isinstance(place.node, ast.Assign | ast.AnnAssign):  # noqa: PLR2004  logger.level
        return False
    value = place.node.value
    called = following.meaning(value.func, place.source.scope) if isinstance(value, ast.Call) else None
    return called is not None and called.dotted == "logging.getLogger"


def _raised_by(target: Target, seen: tuple[Target, ...]) -> tuple[Target, ...] | None:
    """Return the exceptions that a function makes and returns, if the function does nothing else; otherwise None."""
    place = following.definition(target)
    if place is None or target in seen or not isinstance(place.node, ast.FunctionDef):
        return None
    if not harmless.is_harmless_function(target):
        return None
    scope = place.source.scope.function(place.node)
    classes: list[Target] = []
    for value in _results(place.node):
        called = following.meaning(value.func, scope) if isinstance(value, ast.Call) else None
        if called is None:
            return None
        further = (called,) if hierarchy.is_exception(called) else _raised_by(called, (*seen, target))
        if further is None:
            return None
        classes += further
    return tuple(dict.fromkeys(classes)) or None


def _results(function: ast.FunctionDef) -> Iterator[ast.expr | None]:
    for node in trees.walk(function):
        if isinstance(node, ast.Return | ast.Raise):
            todo = [node.value if isinstance(node, ast.Return) else node.exc]
            while todo:
                value = todo.pop()
                if isinstance(value, ast.IfExp):
                    todo += [value.body, value.orelse]
                else:
                    yield value
