"""Find the files of modules without importing them."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from functools import cache
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

OURS = "engine"
"""The Python package of this program."""


def package_of(module: str) -> str:
    """Return the top-level package of a module."""
    return module.partition(".")[0]


def around(module: str) -> Iterator[str]:
    """Yield the parent packages of a module, which Python imports before the module."""
    while module := module.rpartition(".")[0]:
        yield module


def exists(module: str) -> bool:
    """Say whether a module or package of this name exists."""
    return _spec(module) is not None


def is_package(module: str) -> bool:
    """Say whether a module can have modules below it."""
    spec = _spec(module)
    return spec is not None and spec.submodule_search_locations is not None


def file_of(module: str) -> Path | None:
    """Return the file of a module, source or compiled; None for a module without a file."""
    spec = _spec(module)
    return Path(spec.origin) if spec is not None and spec.has_location and spec.origin is not None else None


def forget() -> None:
    """Forget the files of all modules, so that the import path is searched again."""
    importlib.invalidate_caches()
    _spec.cache_clear()


@cache
def _spec(module: str) -> ModuleSpec | None:
    around_it, _, name = module.rpartition(".")
    folders = None
    try:
        if not around_it:
            return importlib.util.find_spec(module)
        outer = _spec(around_it)
        places = outer.submodule_search_locations if outer is not None else None
        folders = None if places is None else list(places)
        return PathFinder.find_spec(module, folders) if folders is not None else None
    except (ImportError, ValueError):
        return None
    except KeyError:  # a folder without `__init__.py`, whose package is not imported
        spec = ModuleSpec(module, None, is_package=True)
        spec.submodule_search_locations = [
            path for each in folders or () if os.path.isdir(path := os.path.join(each, name))
        ]
        return spec
