"""All steps: one in each module of `engine.steps`, and the steps of other Python packages by their entry points."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING

import engine.steps
from engine import plugins
from engine.errors import StepError
from engine.step import Step

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


def ours() -> list[str]:
    """Return the names of the modules in `engine.steps`, which define one step each."""
    return [module.name for module in pkgutil.iter_modules(engine.steps.__path__)]


@cache
def steps() -> Mapping[str, type[Step]]:
    """Return all step classes by name: the name of the module or, for another package, of the entry point.

    Raises StepError if the step of another Python package cannot be loaded, or has the name of another step.
    """
    kinds: dict[str, type[Step]] = {}
    for name in ours():
        step = _step_in(importlib.import_module(f"engine.steps.{name}"))
        kinds[_named(step, name)] = step
    for point in plugins.points(plugins.STEPS):
        step = _load(point)
        name = _named(step, point.name)
        if name in kinds:
            there = f"{kinds[name].__module__}:{kinds[name].__name__}"
            raise plugins.refuse_twins("step", name, there, f"{point.value} ({plugins.package(point)})")
        kinds[name] = step
    return MappingProxyType(kinds)


def _named(step: type[Step], name: str) -> str:
    step.name = name.replace("_", "-")
    return step.name


def _load(point: EntryPoint) -> type[Step]:
    loaded = plugins.load(point, "step")
    step = _step_in(loaded) if isinstance(loaded, ModuleType) else loaded
    if not (isinstance(step, type) and issubclass(step, Step)):
        raise StepError(
            f"the entry point {point.name!r} of {plugins.package(point)} is no step",
            [f"{point.value} is {step!r}"],
            "let it name a subclass of engine.step.Step",
        )
    return step


def _step_in(module: ModuleType) -> type[Step]:
    kinds = [value for value in vars(module).values() if isinstance(value, type) and issubclass(value, Step)]
    own = [kind for kind in kinds if kind.__module__ == module.__name__]
    if len(own) != 1:
        raise StepError(
            f"{module.__name__} holds {len(own)} steps", [step.__name__ for step in own], "put one step into one module"
        )
    return own[0]
