"""Lazy import of the modules that steps run, because a plan only needs the steps themselves."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType

_ROOMS = ("engine.kit.", "engine.runtimes.", "engine.server.", "engine.client.")
"""The rooms whose modules wait."""


class _Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a spec with a lazy loader for a module of these rooms; None for any other module."""
        if not fullname.startswith(_ROOMS):
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.loader is None or spec.submodule_search_locations is not None:
            return None  # packages are small: they are loaded as usual
        spec.loader = LazyLoader(spec.loader)
        return spec


@contextmanager
def loading() -> Iterator[None]:
    """Inside the block, load the modules that steps run only when one of their attributes is first read.

    `from engine.kit.onnx import shapes` does not load `shapes`; `from engine.kit.onnx.shapes import infer` does.
    Workers import steps without lazy loading, so that a job starts with all of its code read.
    """
    finder = _Finder()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
