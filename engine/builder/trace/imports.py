"""Imports: which modules a job uses, also modules that an earlier job of the same worker has imported already."""

from __future__ import annotations

import builtins
import functools
import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import FrameType
from typing import Any

from engine.builder.trace.places import ReadSite


class Imports:
    """The imports of a worker process: each module with the modules that it imported, and the roots of the present job.

    A root is a module that an import statement of the present job named, also if the module was imported before.
    """

    def __init__(self, place: Callable[[FrameType], ReadSite]) -> None:
        """`place` returns which code a frame belongs to."""
        self._place = place
        self._below: dict[str, set[str]] = {}
        self._roots: dict[str, ReadSite] = {}
        self.changed: set[str] = set()
        """The modules whose code has run since the job began."""

    def begin(self) -> None:
        """Forget the roots of the job before."""
        self._roots = {}
        self.changed = set()

    @property
    def roots(self) -> tuple[tuple[str, ReadSite], ...]:
        """The modules that the present job imported, in order, each with the code of the import."""
        return tuple(self._roots.items())

    def install(self) -> None:
        """Replace the functions of Python that import modules by functions that also note the imports."""
        original, by_name = builtins.__import__, importlib.import_module

        @functools.wraps(original)
        def traced(
            name: str,
            globals: Mapping[str, Any] | None = None,  # noqa: A002  the names of builtins.__import__
            locals: Mapping[str, Any] | None = None,  # noqa: A002
            fromlist: Sequence[str] | None = (),
            level: int = 0,
        ) -> Any:
            module = original(name, globals, locals, fromlist or (), level)
            self._note(_absolute(name, globals, level), globals, fromlist or (), sys._getframe(1))  # noqa: SLF001
            return module

        @functools.wraps(by_name)
        def traced_by_name(name: str, package: str | None = None) -> Any:
            module = by_name(name, package)
            frame = sys._getframe(1)  # noqa: SLF001
            self._note(importlib.util.resolve_name(name, package), frame.f_globals, (), frame)
            return module

        builtins.__import__ = traced
        importlib.import_module = traced_by_name

    def reached(self, roots: Iterable[tuple[str, ReadSite]]) -> Iterator[tuple[str, ReadSite]]:
        """Yield each module that a job with these roots uses, with the code that led to the module."""
        todo = list(roots)
        seen: set[str] = set()
        while todo:
            name, place = todo.pop()
            if name in seen:
                continue
            seen.add(name)
            if name in sys.modules:
                yield name, place
            todo += [(each, ReadSite(place.at, name, "")) for each in self._below.get(name, ())]
            outer = name.rpartition(".")[0]
            if outer:
                todo.append((outer, place))

    def _note(self, name: str, importer: Mapping[str, Any] | None, names: Sequence[str], frame: FrameType) -> None:
        inner = [name, *(f"{name}.{each}" for each in names if f"{name}.{each}" in sys.modules)]
        if importer is not None and getattr(importer.get("__spec__"), "_initializing", False):
            self.changed.add(importer["__name__"])
            self._below.setdefault(importer["__name__"], set()).update(inner)
            return
        new = [each for each in inner if each not in self._roots]
        if new:
            self._roots.update(dict.fromkeys(new, self._place(frame)))


def _absolute(name: str, importer: Mapping[str, Any] | None, level: int) -> str:
    if not level or importer is None:
        return name
    package = str(importer.get("__package__") or "")
    base = package.rsplit(".", level - 1)[0] if level > 1 else package
    return f"{base}.{name}" if name else base
