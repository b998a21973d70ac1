"""Entry points: the steps, runtimes and tasks that other installed packages bring."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from engine.errors import StepError
from engine.system import regular
from engine.text import reasons

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

STEPS, RUNTIMES, TASKS = "recipe.steps", "recipe.runtimes", "recipe.tasks"
GROUPS = (STEPS, RUNTIMES, TASKS)
"""The groups of entry points that this program reads."""
METADATA = (".dist-info", ".egg-info")
"""The endings of the folders that describe installed distributions."""


def points(group: str) -> Sequence[EntryPoint]:
    """Return the entry points of one group, sorted by name. A process reads the entry points only once."""
    return [point for point in every() if point.group == group]


def every() -> tuple[EntryPoint, ...]:
    """Return the entry points of all groups, sorted by name."""
    return _entry_points()


def load(point: EntryPoint, kind: str) -> Any:
    """Return the object that an entry point names. Raises StepError where the import fails.

    `kind` is the word that the error message uses for the object: "step", "runtime" or "task".
    """
    try:
        plugin = point.load()
    except Exception as error:
        raise StepError(
            f"the {kind} {point.name!r} of {package(point)} cannot be loaded",
            [f"{point.value}: {type(error).__name__}: {reasons.plain(str(error))}"],
            "repair or uninstall that package",
        ) from error
    _loaded.add(point.module)
    if isinstance(plugin, type):
        _loaded.add(plugin.__module__)
    return plugin


def loaded() -> Sequence[str]:
    """Return the names of the modules of all loaded plugins. A no-op build checks the files of the plugins' modules."""
    return sorted(_loaded)


def refuse_twins(kind: str, name: str, first: str, second: str) -> StepError:
    """Return the error about two steps, runtimes or tasks of Python packages that have the same name.

    The texts `first` and `second` tell where the two steps, runtimes or tasks of the same name are defined.
    """
    return StepError(
        f"two {kind}s are called {name!r}", [first, second], "uninstall one of the packages, or rename the entry point"
    )


def package(point: EntryPoint) -> str:
    """Return the name and version of the installed Python package that an entry point belongs to."""
    return f"{point.dist.name} {point.dist.version}" if point.dist else "an unknown package"


def listings() -> list[str]:
    """Return the path of `entry_points.txt` of every installed package, also where a package has no such file."""
    files = []
    for entry in sys.path:
        with contextlib.suppress(OSError):
            files += [
                os.path.join(entry, name, "entry_points.txt")
                for name in os.listdir(entry or ".")
                if name.endswith(METADATA)
            ]
    return files


def changed() -> bool:
    """Tell whether the installed entry points differ from those that this process read first."""
    return _names(_read()) != _names(_entry_points())


_loaded: set[str] = set()


@cache
def _entry_points() -> tuple[EntryPoint, ...]:
    return _read()


def _read() -> tuple[EntryPoint, ...]:
    if not _any():
        return ()
    from importlib.metadata import entry_points  # imported late: the module is slow to import

    every = entry_points()
    ours = (point for group in GROUPS for point in every.select(group=group))
    return tuple(sorted(ours, key=lambda point: point.name))


def _any() -> bool:
    """Say whether an installed package may bring a plugin, in a quarter of the time in which Python parses all lists.

    Where a folder of the import path is a file, such as an archive, only Python itself can look into it.
    """
    if any(os.path.isfile(entry) for entry in sys.path):
        return True
    groups = [group.encode() for group in GROUPS]
    for listing in listings():
        with contextlib.suppress(OSError):
            text = regular.read(listing)
            if any(group in text for group in groups):
                return True
    return False


def _names(points: Sequence[EntryPoint]) -> list[str]:
    return sorted(f"{point.group}:{point.name}={point.value}" for point in points)
