"""The tasks that there are: our own, a module each, and those that other packages bring."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import EntryPoint
from pathlib import Path

from engine import plugins
from engine.errors import StepError
from engine.tasks import heads
from engine.tasks.task import TENSORS, Task

_AROUND = ("answer", "heads", "registry", "task")
"""Modules of this package that are no tasks."""
_VALUE = "TASK"
"""What the module of a task calls it."""


def names() -> tuple[str, ...]:
    """Return the names that a recipe may say, sorted; none is loaded. Raises StepError where two tasks share one."""
    return tuple(sorted({**_ours(), **_theirs()}))


def known(name: str | None) -> Task | None:
    """Return the task of that name; None where nobody here knows it: a server's model may be for anything."""
    if name == TENSORS.name:
        return TENSORS
    if name is None or (name not in _ours() and name not in _theirs()):
        return None
    return _loaded(name)


def find(name: str) -> Task:
    """Return the task of that name. Raises StepError where there is none, or where it cannot be loaded."""
    task = known(name)
    if task is None:
        raise StepError(
            f"there is no task {name!r}", [f"tasks: {', '.join(names())}"], "install the package that brings it"
        )
    return task


@cache
def every() -> tuple[Task, ...]:
    """Return all tasks that a recipe may say, by name. Raises StepError where one cannot be loaded."""
    return tuple(find(name) for name in names())


def generates(name: str | None) -> bool:
    """Whether the models of a task generate text; False for None and for a name that no installed task has."""
    task = known(name)
    return task is not None and task.generates is not None


def either(suits: Callable[[Task], object]) -> str:
    """Return the names of the tasks that suit, for a hint: `text-generation or text2text-generation`."""
    return " or ".join(task.name for task in every() if suits(task))


def modules(name: str | None) -> tuple[str, ...]:
    """Return the modules whose code decides what is done for a task.

    For None the checkpoint says it when the job runs: any may be meant that a checkpoint can name.
    """
    places = (_ours().get(each) or _theirs().get(each) for each in ((name,) if name is not None else heads.NAMED))
    return tuple(place if isinstance(place, str) else place.module for place in places if place is not None)


def makers(name: str | None) -> tuple[str, ...]:
    """Return the modules that make answers for a task; for None as `modules` does."""
    found = (known(each) for each in ((name,) if name is not None else heads.NAMED))
    return tuple(dict.fromkeys(task.answers for task in found if task is not None and task.answers is not None))


@cache
def _ours() -> Mapping[str, str]:
    """Return the module of each of our own tasks, by the task's name."""
    found = (module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)]))
    return {name.replace("_", "-"): f"{__package__}.{name}" for name in found if name not in _AROUND}


@cache
def _theirs() -> Mapping[str, EntryPoint]:
    """Return the entry point of each task of another package. Raises StepError where a name is taken."""
    found: dict[str, EntryPoint] = {}
    taken = {**_ours(), TENSORS.name: TENSORS.__module__}
    for point in plugins.points(plugins.TASKS):
        here = f"{point.value} ({plugins.package(point)})"
        if point.name in taken:
            raise plugins.refuse_twins("task", point.name, taken[point.name], here)
        found[point.name] = point
        taken[point.name] = here
    return found


@cache
def _loaded(name: str) -> Task:
    if name in _ours():
        task, place = getattr(importlib.import_module(_ours()[name]), _VALUE, None), _ours()[name]
    else:
        point = _theirs()[name]
        task, place = plugins.load(point, "task"), f"{point.value} ({plugins.package(point)})"
    if not isinstance(task, Task) or task.name != name:
        raise StepError(
            f"{place} does not hold the task {name!r}",
            [f"it is {task!r}"[:200]],
            f"let it name a Task(name={name!r}, ...) of engine.tasks",
        )
    return task
