"""Registry: all runtimes, those of engine/runtimes and those that other packages declare as entry points."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable, Mapping
from functools import cache
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING

import engine.runtimes
from engine import plugins
from engine.errors import StepError
from engine.runtimes.runtime import Runtime

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from engine.runtimes.recipes import RecipeView


_SPEC = "spec"
"""The module that declares the runtime, in each package of engine/runtimes."""


@cache
def runtimes() -> Mapping[str, Runtime]:
    """Return every runtime by its name: first the runtimes of engine/runtimes, then the runtimes of other packages.

    Raises StepError where an entry point cannot be loaded.
    """
    return MappingProxyType({name: find(name) for name in (*_ours(), *_theirs())})


@cache
def find(name: str) -> Runtime:
    """Return the runtime with the given name, without loading others.

    Raises StepError where no runtime has the given name, and where two have it.
    """
    if name in _ours():
        [kind] = _kinds(importlib.import_module(f"{__package__}.{_ours()[name]}.{_SPEC}"))
        return kind()
    if name in _theirs():
        return _loaded(_theirs()[name])()
    raise StepError(
        f"there is no runtime {name!r}",
        [f"runtimes: {', '.join(sorted(runtimes()))}"],
        "install the package that brings it",
    )


def of(recipe: RecipeView) -> Runtime:
    """Return the runtime that a recipe names in `target.runtime`."""
    return find(recipe.target.runtime)


def targets() -> tuple[str, ...]:
    """Return the allowed values of `target.runtime`, in the order in which messages list them."""
    return tuple(name for name, each in runtimes().items() if each.targets)


def rivals() -> tuple[str, ...]:
    """Return the names of the runtimes that `bench.against` may name."""
    return tuple(name for name, each in runtimes().items() if each.rival_of is not None)


def providers() -> tuple[str, ...]:
    """Return the allowed values of `target.provider`."""
    return tuple(dict.fromkeys(provider for each in runtimes().values() for provider in each.providers))


def in_words(matching: Iterable[Runtime]) -> str:
    """Return the names of runtimes, joined for a sentence: `onnxruntime or tensorrt`."""
    return " or ".join(each.name for each in matching)


@cache
def _ours() -> Mapping[str, str]:
    """Return the name of each runtime in engine/runtimes -> its package, whose name has `_` in the place of `-`."""
    packages = (each.name for each in pkgutil.iter_modules(engine.runtimes.__path__) if each.ispkg)
    return {package.replace("_", "-"): package for package in packages}


@cache
def _theirs() -> Mapping[str, EntryPoint]:
    """Return the name of each runtime of another Python package -> the runtime's entry point.

    Raises StepError where two runtimes share a name.
    """
    points: dict[str, EntryPoint] = {}
    taken = {name: f"{__package__}.{package}" for name, package in _ours().items()}
    for point in plugins.points(plugins.RUNTIMES):
        here = f"{point.value} ({plugins.package(point)})"
        if point.name in taken:
            raise plugins.refuse_twins("runtime", point.name, taken[point.name], here)
        points[point.name], taken[point.name] = point, here
    return points


def _kinds(module: ModuleType) -> list[type[Runtime]]:
    return [
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Runtime) and value.__module__ == module.__name__
        if "name" in vars(value)
    ]


def _loaded(point: EntryPoint) -> type[Runtime]:
    loaded = plugins.load(point, "runtime")
    kinds = _kinds(loaded) if isinstance(loaded, ModuleType) else [loaded]
    if (
        len(kinds) == 1
        and isinstance(kinds[0], type)
        and issubclass(kinds[0], Runtime)
        and getattr(kinds[0], "name", None) == point.name
    ):
        return kinds[0]
    raise StepError(
        f"the entry point {point.name!r} of {plugins.package(point)} is no runtime",
        [f"{point.value} is {loaded!r}"],
        "let it name a subclass of engine.runtimes.Runtime whose `name` is the entry point's",
    )
