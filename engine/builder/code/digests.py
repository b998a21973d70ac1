"""Digests of the code of steps and modules, with the files that were read to compute the digests."""

from __future__ import annotations

import contextlib
import gc
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from engine import digest
from engine.builder.code import closure, hierarchy, modules, numbering, reading, sources
from engine.builder.code.closure import Closure, CodeNode
from engine.digest import Digest
from engine.errors import StepError

if TYPE_CHECKING:
    from engine.step import Step


@dataclass(frozen=True)
class Code:
    """The digest of some code, and the files that were read to compute the digest."""

    digest: Digest
    files: tuple[Path, ...]
    before: Mapping[Path, os.stat_result]
    """The `os.stat` result of each file from before the file was read; folders have no entry."""


def of_step(step: Step) -> Code:
    """Return the digest of the code that a step with its options runs, from its class and its `code_used`."""
    return _of_class(type(step), step.code_used())


def of_modules(names: tuple[str, ...]) -> Code:
    """Return the code of several modules as one digest, which does not depend on the order of the modules."""
    roots = [CodeNode(name) for name in dict.fromkeys(names)]
    with _uncollected():
        return _together(closure.of(roots), roots)


@cache
def of_module(name: str) -> Code:
    """Return the code of a module and of all modules that it reaches, in its own package and in this one.

    The digest covers the code and the declared data of the modules, but no paths: moving or renaming a module does not
    change the digest. Raises StepError for declared data that is missing.
    """
    return of_modules((name,))


def reached(step: Step) -> Closure:
    """Return the code that a step with its options reaches: what its digest covers."""
    return closure.of(*_roots(type(step), step.code_used()))


def forget() -> None:
    """Forget the digests of all code, so that the files are read again."""
    _of_class.cache_clear()
    of_module.cache_clear()
    closure.forget()
    hierarchy.forget()
    reading.forget()


@cache
def _of_class(kind: type[Step], names: tuple[str, ...]) -> Code:
    with _uncollected():
        _refuse_unshaping_result(kind)
        roots, steps = _roots(kind, names)
        code = _together(closure.of(roots, steps), roots)
    return Code(digest.of_rows([(kind.__qualname__, code.digest)]), code.files, code.before)


def _roots(kind: type[Step], names: tuple[str, ...]) -> tuple[list[CodeNode], list[CodeNode]]:
    """Return where a step's code begins, and the classes of the step.

    The code begins at the step's class, and at all statements of each further module that `code_used` names.
    """
    steps = [node for each in kind.__mro__ for node in _class(each)]
    own = _class(kind)
    others = [CodeNode(name) for name in dict.fromkeys(names) if name != kind.__module__ or not own]
    return [*own, *others], steps


def _refuse_unshaping_result(kind: type[Step]) -> None:
    """Raise StepError for a step whose report is a result, although the report's class declares to shape no output."""
    from engine.step import Step

    report = kind.report
    is_result = kind.section is not None or kind.judge is not Step.judge
    if report is not None and is_result and sources.is_unshaping(report.__module__, (report.__name__,)):
        raise StepError(
            f"the report of the step {kind.step_name()!r} is judged or shown as a result",
            [f"its class {report.__name__} declares `{sources.SHAPES} = False`"],
            "take the declaration out: the numbers of the report are what the step is for",
        )


def _class(kind: type) -> tuple[CodeNode, ...]:
    """Return the statement that defines a class; () where no single statement of a module defines it."""
    from engine.step import Step

    counts = issubclass(kind, Step) and modules.counts(kind.__module__, kind.__module__)
    source = sources.of(kind.__module__) if counts else None
    if source is None or source.definition(kind.__qualname__) is None or source.is_dynamic:
        return ()
    return (CodeNode(kind.__module__, source.names[kind.__qualname__][0]),)


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """Context manager: Python does not look for garbage, of which parsed code makes none; this saves a third."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _together(code: Closure, roots: Iterable[CodeNode]) -> Code:
    parts = [reading.read(name) for name in code.modules]
    before = {path: row for part in parts for path, row in part.before}
    files = tuple(dict.fromkeys(file for part in parts for file in part.files))
    return Code(numbering.digest_of(code, roots), files, before)
