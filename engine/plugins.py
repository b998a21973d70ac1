"""What other packages bring - steps, runtimes, tasks - by their entry points."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from engine.errors import StepError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

STEPS, RUNTIMES, TASKS = "recipe.steps", "recipe.runtimes", "recipe.tasks"
GROUPS = (STEPS, RUNTIMES, TASKS)
"""The groups of entry points through which other packages join."""


def points(group: str) -> Sequence[EntryPoint]:
    """Return the entry points of one group by name, as they were when this process first looked."""
    return [point for point in _found() if point.group == group]


def load(point: EntryPoint, kind: str) -> Any:
    """Return what an entry point names; `kind` is what it should be, in one word. Raises StepError where it cannot."""
    try:
        found = point.load()
    except Exception as error:
        raise StepError(
            f"the {kind} {point.name!r} of {package(point)} cannot be loaded",
            [f"{point.value}: {type(error).__name__}: {error}"],
            "repair or uninstall that package",
        ) from error
    _loaded.update((point.module, found.__module__) if isinstance(found, type) else (point.module,))
    return found


def loaded() -> Sequence[str]:
    """Return the modules of what was loaded: whether a recipe wants it, and how, their code decides."""
    return sorted(_loaded)


def refuse_twins(kind: str, name: str, first: str, second: str) -> StepError:
    """Return the error for two things of one kind and name; `first` and `second` say where they come from."""
    return StepError(
        f"two {kind}s are called {name!r}", [first, second], "uninstall one of the packages, or rename the entry point"
    )


def package(point: EntryPoint) -> str:
    """Return the distribution that an entry point belongs to, in words."""
    return f"{point.dist.name} {point.dist.version}" if point.dist else "an unknown package"


def listings() -> list[str]:
    """Return the files in which installed packages list their entry points, those of all packages that may have one."""
    found = []
    for entry in sys.path:
        with contextlib.suppress(OSError):
            found += [
                os.path.join(entry, name, "entry_points.txt")
                for name in os.listdir(entry or ".")
                if name.endswith((".dist-info", ".egg-info"))
            ]
    return found


def changed() -> bool:
    """Say whether other packages bring other things by now than when this process first looked."""
    return _names(_look()) != _names(_found())


_loaded: set[str] = set()


@cache
def _found() -> tuple[EntryPoint, ...]:
    return _look()


def _look() -> tuple[EntryPoint, ...]:
    from importlib.metadata import entry_points  # reads the metadata of all that is installed

    every = entry_points()
    found = (point for group in GROUPS for point in every.select(group=group))
    return tuple(sorted(found, key=lambda point: point.name))


def _names(found: Sequence[EntryPoint]) -> list[str]:
    return sorted(f"{point.group}:{point.name}={point.value}" for point in found)
