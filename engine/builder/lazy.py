"""Modules that are loaded when they are first used: a plan needs to know what a step is, not what it runs."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType

_ROOMS = ("engine.kit.", "engine.runtimes.", "engine.server.", "engine.client.")
"""What steps work with."""


class _Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a spec whose loader waits for the first attribute; None for what is to be loaded as usual."""
        if not fullname.startswith(_ROOMS):
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.loader is None or spec.submodule_search_locations is not None:
            return None  # packages hold next to nothing
        spec.loader = LazyLoader(spec.loader)
        return spec


@contextmanager
def loading() -> Iterator[None]:
    """Let modules of the rooms that steps use wait until something of them is asked for.

    `from engine.kit.onnx import shapes` waits; `from engine.kit.onnx.shapes import infer` asks for something. Workers
    import steps without this: a job starts with all of its code read.
    """
    finder = _Finder()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
