"""Find the files of modules without importing them, and decide which modules' code counts in keys."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from functools import cache
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

OURS = "engine"
_COUNTED = (
    *("engine.steps", "engine.kit", "engine.runtimes", "engine.tasks", "engine.server", "engine.client"),
    *("engine.store.copying", "engine.machine.cpu", "engine.machine.gpu_state", "engine.machine.nvml"),
    "engine.machine.programs",
)
"""The modules of this package whose code counts in keys: the modules that do the work of steps."""
_LOOKED_UP = ("engine.runtimes.registry", "engine.runtimes.triton_images")
"""Modules whose code does not count in keys, although `_COUNTED` names their Python packages.

The code of a module in `_LOOKED_UP` need not count, because the values that a recipe takes from the module are rows of
the key already, or because a step's `code_used` names the module.
"""


def is_ours(module: str) -> bool:
    """Say whether a module belongs to the Python package `engine`."""
    return package_of(module) == OURS


def package_of(module: str) -> str:
    """Return the top-level package of a module."""
    return module.partition(".")[0]


def counts(module: str, asker: str) -> bool:
    """Say whether a module's code counts in keys when the module `asker` imports it.

    Two kinds of code count: the code of this project's modules that do the work of steps, and the code of the Python
    package that contains the module `asker`.
    """
    if is_ours(module):
        return module not in _LOOKED_UP and any(module == each or module.startswith(f"{each}.") for each in _COUNTED)
    return package_of(module) == package_of(asker)


def is_known(module: str, asker: str) -> bool:
    """Say whether a module belongs to the Python package `engine` or to the Python package of `asker`.

    All other modules are libraries, whose code is never read.
    """
    return is_ours(module) or package_of(module) == package_of(asker)


def around(module: str) -> Iterator[str]:
    """Yield the parent packages of a module, which Python imports before the module."""
    while module := module.rpartition(".")[0]:
        yield module


def exists(module: str) -> bool:
    """Say whether a module or package of this name exists."""
    return _spec(module) is not None


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
