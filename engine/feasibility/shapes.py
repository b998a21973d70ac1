"""Shapes: checks the shapes of `bench` against the profiles, and shapes and profiles against the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from engine.feasibility import proposals, stated_axes, stated_values
from engine.recipe.schema import Recipe
from engine.recipe.values import Profile, Range
from engine.runtimes import axes, recipes, registry
from engine.runtimes.profiles import greatest
from engine.runtimes.profiles import usual as usual_profiles

if TYPE_CHECKING:
    from engine.feasibility.facts import ModelFacts
    from engine.recipe.load import LoadedRecipe


def check(loaded: LoadedRecipe) -> None:
    """Raise RecipeError for a shape of `bench` outside all profiles, if the model takes only shapes of profiles."""
    _within(loaded, None)


def _within(loaded: LoadedRecipe, facts: ModelFacts | None) -> None:
    recipe = loaded.recipe
    allowed = recipe.profiles if facts is None else profiles(recipe, facts)
    if not registry.of(recipe).fixes_profiles(recipe.target) or not allowed or recipe.bench is None:
        return
    for index, shape in enumerate(recipe.bench.shapes):
        named = shape.axes if facts is None else axes.by_name(shape.axes, facts.axes)
        if not any(_takes(profile, named) for profile in allowed):
            sizes = ", ".join(f"{axis} {size}" for axis, size in shape.axes.items())
            hint = "widen a profile, or measure a shape inside one"
            raise loaded.error(f"no profile takes {sizes}", "bench", "shapes", index, hint=hint)


def _takes(profile: Mapping[str, Range], sizes: Mapping[str, int]) -> bool:
    return all(axis not in profile or profile[axis].min <= size <= profile[axis].max for axis, size in sizes.items())


def check_model(loaded: LoadedRecipe, facts: ModelFacts) -> None:
    """Raise RecipeError for profiles and shapes of `bench` that do not fit the model's axes or its limit of tokens."""
    if facts.dynamic is None:
        return
    recipe = loaded.recipe
    if facts.dynamic and not profiles(recipe, facts):
        what = "the model has axes of any size, and no profile says which sizes are meant"
        hint = f"add {proposals.profiles(facts)}"
        raise loaded.error(what, "profiles", facts=stated_axes.about(facts), hint=hint)
    for index, profile in enumerate(recipe.profiles):
        stated_axes.check(loaded, ("profiles", index), profile, facts)
    stated_values.check(loaded, facts)
    for index, shape in enumerate(recipe.bench.shapes if recipe.bench else ()):
        # Samples have lengths from 1 token on.
        stated = {**({shape.samples: 1} if shape.samples else {}), **shape.axes}
        sizes = {key: Range(min=size, opt=size, max=size) for key, size in stated.items()}
        stated_axes.check(loaded, ("bench", "shapes", index), sizes, facts)
    _within(loaded, facts)
    _served(loaded, facts)


def _served(loaded: LoadedRecipe, facts: ModelFacts) -> None:
    """Raise RecipeError for a shape to measure through a server, where the shape exceeds the package's limits.

    The server would refuse a request beyond the package's limits, or truncate the request's texts.
    """
    recipe = loaded.recipe
    if recipe.bench is None or not recipes.served(recipe):
        return
    limits = greatest(profiles(recipe, facts))
    if recipe.package.triton.max_batch_size:
        limits["batch"] = recipe.package.triton.max_batch_size
    for index, shape in enumerate(recipe.bench.shapes):
        for axis, size in axes.by_name(shape.axes, facts.axes).items():
            if size > limits.get(axis, size):
                what = f"{axis} {size} through a server, and the package takes at most {limits[axis]}"
                hint = "widen a profile (and package.triton.max_batch_size), or use via: [in-process]"
                raise loaded.error(what, "bench", "shapes", index, axis, hint=hint)


def profiles(recipe: Recipe | LoadedRecipe, facts: ModelFacts) -> tuple[Profile, ...]:
    """Return the profiles of a recipe by the names of axes.

    A recipe without profiles gets the usual profile of a text or image model.

    The usual profile takes 1 to 8 inputs at once, each of 1 to 512 tokens, or of fewer tokens where the model's limit
    is lower. An ONNX file has no usual profile, because its axes may mean anything.
    """
    own = recipe.profiles if isinstance(recipe, Recipe) else recipe.recipe.profiles
    return tuple(axes.by_name(profile, facts.axes) for profile in own) or usual(facts)


def usual(facts: ModelFacts) -> tuple[Profile, ...]:
    """Return the usual profile for a model, used by a recipe without profiles; empty for an ONNX file."""
    return () if facts.kind == "onnx" else usual_profiles(facts.dynamic or (), facts.max_sequence)
