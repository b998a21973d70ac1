"""Modules that are loaded when one of their attributes is first read."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import cast

# `importlib.util.LazyLoader` loses Ctrl-C. CPython's import statement reads `__spec__` of a module that it finds in
# `sys.modules`, and clears any exception of that reading (`import_ensure_initialized` of Python/import.c in CPython
# 3.11). `LazyLoader` loads the module at that moment: a KeyboardInterrupt then vanishes, and a module without most of
# its names is left.


class _LazyModule(ModuleType):
    """A module whose code has not run yet."""

    def __getattribute__(self, name: str) -> object:
        """Run the module's code first, unless `name` is `__spec__`.

        If the code raises an exception, such as KeyboardInterrupt, it runs again when an attribute is read again.
        """
        spec = object.__getattribute__(self, "__spec__")
        if name == "__spec__":
            return spec
        self.__class__ = ModuleType  # type: ignore[assignment]  # a module may read its own attributes while it is loaded
        try:
            spec.loader.exec_module(self)
        except BaseException:
            self.__class__ = _LazyModule
            raise
        return getattr(self, name)


class _LazyLoader(Loader):
    def __init__(self, loader: Loader) -> None:
        self.loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Create the module as its own loader does."""
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Hand the module back to its own loader, and leave its code for later."""
        spec = cast("ModuleSpec", module.__spec__)  # the import system has set it
        module.__loader__ = spec.loader = self.loader
        module.__class__ = _LazyModule


class _LazyFinder(MetaPathFinder):
    def __init__(self, beginnings: tuple[str, ...]) -> None:
        self.beginnings = beginnings

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a spec with a lazy loader for a module whose name begins so; None for any other module."""
        if not fullname.startswith(self.beginnings):
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.loader is None or spec.submodule_search_locations is not None:
            return None  # packages are small: they are loaded as usual
        spec.loader = _LazyLoader(spec.loader)
        return spec


@contextmanager
def loading_lazily(*beginnings: str) -> Iterator[None]:
    """Inside the `with` block, load a module whose name begins so only when one of its attributes is read.

    With lazy loading, `from engine.kit.onnx import shapes` does not load `shapes` yet; `from engine.kit.onnx.shapes
    import infer` loads `shapes` at once.
    """
    finder = _LazyFinder(beginnings)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
