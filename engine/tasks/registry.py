"""The registry of tasks: finds tasks in the modules of `engine.tasks` and in other packages' entry points."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from engine import plugins
from engine.errors import StepError
from engine.tasks import heads
from engine.tasks.task import TENSORS, Task

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_AROUND = ("aliases", "answer", "heads", "registry", "task")
"""The names of the modules of `engine.tasks` that define no task."""
_VALUE = "TASK"
"""The name of the variable that holds the `Task` in a task's module."""


def names() -> tuple[str, ...]:
    """Return the sorted names of all tasks, without importing their modules. Raises StepError for a name twice."""
    return tuple(sorted({**_ours(), **_theirs()}))


def known(name: str | None) -> Task | None:
    """Return the installed task called `name`; None where no installed task has the name."""
    if name == TENSORS.name:
        return TENSORS
    if name is None or (name not in _ours() and name not in _theirs()):
        return None
    return _loaded(name)


def find(name: str) -> Task:
    """Return the task of a name. Raises StepError where there is none, or its module cannot be loaded."""
    task = known(name)
    if task is None:
        raise StepError(
            f"there is no task {name!r}", [f"tasks: {', '.join(names())}"], "install the package that brings it"
        )
    return task


@cache
def every() -> tuple[Task, ...]:
    """Return all tasks that a recipe may name, sorted by name. Raises StepError where a task cannot be loaded."""
    return tuple(find(name) for name in names())


def generates(name: str | None) -> bool:
    """Whether models of the task `name` generate text; False where `name` is None or no installed task has the name."""
    task = known(name)
    return task is not None and task.generates is not None


def either(suits: Callable[[Task], object]) -> str:
    """Return the names of the tasks for which `suits` is true, joined for a hint: `fill-mask or text-generation`."""
    return " or ".join(task.name for task in every() if suits(task))


def modules(name: str | None) -> tuple[str, ...]:
    """Return the names of the modules that define a task.

    The code of the modules is in the keys of jobs that depend on the task. For a `name` of None, the result is the
    modules of all tasks that a checkpoint can name, because the job reads the task from the checkpoint only when the
    job runs.
    """
    places = (_ours().get(each) or _theirs().get(each) for each in ((name,) if name is not None else heads.NAMED))
    return tuple(place if isinstance(place, str) else place.module for place in places if place is not None)


def makers(name: str | None) -> tuple[str, ...]:
    """Return the modules that make the postprocessing of a task; for None, of all tasks that a checkpoint can name."""
    candidates = (known(each) for each in ((name,) if name is not None else heads.NAMED))
    return tuple(dict.fromkeys(task.answers for task in candidates if task is not None and task.answers is not None))


@cache
def _ours() -> Mapping[str, str]:
    """Return the name of each task in `engine.tasks` -> the name of the task's module."""
    files = (module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)]))
    return {name.replace("_", "-"): f"{__package__}.{name}" for name in files if name not in _AROUND}


@cache
def _theirs() -> Mapping[str, EntryPoint]:
    """Return each task of other packages -> its entry point. Raises StepError where two share a name."""
    points: dict[str, EntryPoint] = {}
    taken = {**_ours(), TENSORS.name: TENSORS.__module__}
    for point in plugins.points(plugins.TASKS):
        here = f"{point.value} ({plugins.package(point)})"
        if point.name in taken:
            raise plugins.refuse_twins("task", point.name, taken[point.name], here)
        points[point.name] = point
        taken[point.name] = here
    return points


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
