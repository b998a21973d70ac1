"""Where modules lie, without importing any, and whose code counts."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from functools import cache
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

OURS = "engine"
_COUNTED = (
    *("engine.steps", "engine.kit", "engine.runtimes", "engine.tasks", "engine.server", "engine.client"),
    *("engine.store.copying", "engine.machine.cpu", "engine.machine.gpu_state"),
)
"""Of our own package only these hold what a step does; all else carries it."""
_LOOKED_UP = ("engine.runtimes.registry", "engine.runtimes.triton_images")
"""But not these: what a recipe takes from them is a row already, or named by `Step.code_used`."""


def is_ours(module: str) -> bool:
    """Say whether a module is of our own package."""
    return package_of(module) == OURS


def package_of(module: str) -> str:
    """Return the package at the top that a module belongs to."""
    return module.partition(".")[0]


def counts(module: str, asker: str) -> bool:
    """Say whether the code of a module counts where the module `asker` imports it: ours, and that of its package."""
    if is_ours(module):
        return module not in _LOOKED_UP and any(module == each or module.startswith(f"{each}.") for each in _COUNTED)
    return package_of(module) == package_of(asker)


def is_known(module: str, asker: str) -> bool:
    """Say whether a module's file may be looked for: of ours, and of the asker's package. All else is a library."""
    return is_ours(module) or package_of(module) == package_of(asker)


def around(module: str) -> Iterator[str]:
    """Yield the packages around a module: Python runs them before it."""
    while module := module.rpartition(".")[0]:
        yield module


def exists(module: str) -> bool:
    """Say whether there is such a module, or a folder of modules."""
    return _spec(module) is not None


def file_of(module: str) -> Path | None:
    """Return the file of a module: source or compiled; None for one that has none."""
    spec = _spec(module)
    return Path(spec.origin) if spec is not None and spec.has_location and spec.origin is not None else None


def forget() -> None:
    """Look for every module anew when it is asked for again."""
    importlib.invalidate_caches()
    _spec.cache_clear()


@cache
def _spec(module: str) -> ModuleSpec | None:
    around_it = module.rpartition(".")[0]
    try:
        if not around_it:
            return importlib.util.find_spec(module)
        outer = _spec(around_it)
        folders = outer.submodule_search_locations if outer is not None else None
        return PathFinder.find_spec(module, list(folders)) if folders is not None else None
    except (ImportError, ValueError):
        return None
