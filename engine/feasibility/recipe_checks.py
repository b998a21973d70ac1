"""The checks of a recipe, and of a recipe with its model, in their order."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from engine.errors import RecipeError
from engine.feasibility import bench, precision, serving, shapes, target, tune
from engine.recipe import supported
from engine.runtimes import registry

if TYPE_CHECKING:
    from engine.feasibility.facts import ModelFacts
    from engine.recipe.load import LoadedRecipe


def check(loaded: LoadedRecipe) -> None:
    """Raise RecipeError where the recipe asks for something that the target cannot do, or that no step supports yet."""
    _each(loaded, _check)
    tune.check(loaded)


def check_model(loaded: LoadedRecipe, facts: ModelFacts) -> None:
    """Raise RecipeError where the recipe asks for something that the fetched model or the target cannot do."""
    from engine.feasibility import model  # a recipe that is refused without its model does not wait for this import

    _each(loaded, lambda view: model.check_model(view, facts))


def _each(loaded: LoadedRecipe, checks: Callable[[LoadedRecipe], None]) -> None:
    """Check a recipe; where its runtime stands for several, check it as if it named each of them.

    The error about one of several runtimes says which one it is about. Its hint names those that can build the recipe.
    """
    candidates = registry.of(loaded.recipe).candidates(loaded.recipe)
    if not candidates:
        checks(loaded)
        return
    target.check_options(loaded, target.check(loaded))
    errors: dict[str, RecipeError] = {}
    for name in candidates:
        try:
            checks(loaded.as_run_by(name))
        except RecipeError as refusal:
            errors[name] = refusal
    for name, error in errors.items():
        target_of = loaded.recipe.target
        by = {each: None if target_of.device == "cpu" else registry.find(each).default_provider(target_of)
              for each in candidates if each not in errors}  # fmt: skip
        able = [f"runtime: {each}{f', provider: {provider}' if provider else ''}" for each, provider in by.items()]
        fact = f"`runtime: {loaded.recipe.target.runtime}` measures {' and '.join(candidates)}; this is about {name}"
        hint = "; or say ".join([error.hint, " or ".join(able)] if able else [error.hint])
        raise RecipeError(error.what, error.position, facts=[*error.facts, fact], hint=hint)


def _check(loaded: LoadedRecipe) -> None:
    devices = target.check(loaded)
    precision.check(loaded, devices)
    precision.check_tf32(loaded, devices)
    target.check_options(loaded, devices)
    serving.check(loaded)
    shapes.check(loaded)
    bench.check(loaded)
    bench.check_rivals(loaded, devices)
    supported.check(loaded)
