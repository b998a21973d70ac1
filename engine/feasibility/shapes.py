"""Shapes: checks the shapes of `bench` against the profiles, and shapes and profiles against the model's axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from engine.feasibility.facts import ModelFacts
from engine.recipe.schema import Profile, Range, Recipe
from engine.runtimes import recipes, registry
from engine.runtimes.profiles import greatest, in_words, usual_ranges
from engine.runtimes.profiles import usual as usual_profiles
from engine.text import suggestions

if TYPE_CHECKING:
    from engine.recipe.load import LoadedRecipe


def check(loaded: LoadedRecipe) -> None:
    """Raise RecipeError for a shape of `bench` outside all profiles, if the model takes only shapes of profiles."""
    _within(loaded, loaded.recipe.profiles)


def _within(loaded: LoadedRecipe, profiles: Sequence[Profile]) -> None:
    recipe = loaded.recipe
    if not registry.of(recipe).fixes_profiles(recipe.target) or not profiles or recipe.bench is None:
        return
    for index, shape in enumerate(recipe.bench.shapes):
        if not any(_takes(profile, shape.axes) for profile in profiles):
            sizes = ", ".join(f"{axis} {size}" for axis, size in shape.axes.items())
            hint = "widen a profile, or measure a shape inside one"
            raise loaded.error(f"no profile takes {sizes}", "bench", "shapes", index, hint=hint)


def _takes(profile: Mapping[str, Range], axes: Mapping[str, int]) -> bool:
    return all(axis not in profile or profile[axis].min <= size <= profile[axis].max for axis, size in axes.items())


def check_model(loaded: LoadedRecipe, facts: ModelFacts) -> None:
    """Raise RecipeError for profiles and shapes of `bench` that do not fit the model's axes or its limit of tokens."""
    dynamic = facts.dynamic
    if dynamic is None:
        return
    recipe = loaded.recipe
    if dynamic and not profiles(recipe, facts):
        what = "the model has axes of any size, and no profile says which sizes are meant"
        raise loaded.error(what, "profiles", facts=_about(dynamic), hint=f"add {_proposal(dynamic, facts)}")
    for index, profile in enumerate(recipe.profiles):
        _check_axes(loaded, ("profiles", index), {axis: sizes.max for axis, sizes in profile.items()}, facts, dynamic)
    for index, shape in enumerate(recipe.bench.shapes if recipe.bench else ()):
        _check_axes(loaded, ("bench", "shapes", index), shape.axes, facts, dynamic)
    _within(loaded, profiles(recipe, facts))
    _served(loaded, profiles(recipe, facts))


def _served(loaded: LoadedRecipe, profiles: Sequence[Profile]) -> None:
    """Raise RecipeError for a shape to measure through a server, where the shape exceeds the package's limits.

    The server would refuse a request beyond the package's limits, or truncate the request's texts.
    """
    recipe = loaded.recipe
    if recipe.bench is None or not recipes.served(recipe):
        return
    limits = greatest(profiles)
    if recipe.package.triton.max_batch_size:
        limits["batch"] = recipe.package.triton.max_batch_size
    for index, shape in enumerate(recipe.bench.shapes):
        for axis, size in shape.axes.items():
            if size > limits.get(axis, size):
                what = f"{axis} {size} through a server, and the package takes at most {limits[axis]}"
                hint = "widen a profile (and package.triton.max_batch_size), or use via: [in-process]"
                raise loaded.error(what, "bench", "shapes", index, axis, hint=hint)


def profiles(recipe: Recipe | LoadedRecipe, facts: ModelFacts) -> tuple[Profile, ...]:
    """Return the profiles of a recipe. A recipe without profiles gets the usual profile of a text or image model.

    The usual profile takes 1 to 8 inputs at once, each of 1 to 512 tokens, or of fewer tokens where the model's limit
    is lower. An ONNX file has no usual profile, because its axes may mean anything.
    """
    own = recipe.profiles if isinstance(recipe, Recipe) else recipe.recipe.profiles
    return own or usual(facts)


def usual(facts: ModelFacts) -> tuple[Profile, ...]:
    """Return the usual profile for a model, used by a recipe without profiles; empty for an ONNX file."""
    return () if facts.kind == "onnx" else usual_profiles(facts.dynamic or (), facts.max_sequence)


def _check_axes(
    loaded: LoadedRecipe,
    path: tuple[str | int, ...],
    sizes: Mapping[str, int],
    facts: ModelFacts,
    dynamic: Sequence[str],
) -> None:
    """Check the largest sizes of a profile, or the sizes of a bench shape, against the model's axes."""
    for axis, size in sizes.items():
        if axis not in dynamic:
            hint = suggestions.hint(axis, dynamic)
            raise loaded.error(f"the model has no axis `{axis}`", *path, axis, facts=_about(dynamic), hint=hint)
        longest = facts.max_sequence
        if axis == "sequence" and longest is not None and size > longest:
            what = f"{size} tokens are more than the model has positions for: {longest}"
            raise loaded.error(what, *path, axis, hint=f"at most {longest} is possible")
    missing = [axis for axis in dynamic if axis not in sizes]
    if missing:
        what = f"the model's axis `{missing[0]}` may have any size, and nothing here says which"
        hint = f"as in {_proposal(dynamic, facts)}" if path[0] == "profiles" else f"add {missing[0]}: 1"
        raise loaded.error(what, *path, facts=_about(dynamic), hint=hint)


def _about(dynamic: Sequence[str]) -> list[str]:
    return [f"its axes of any size: {', '.join(dynamic)}" if dynamic else "all of its axes have a fixed size"]


def _proposal(dynamic: Sequence[str], facts: ModelFacts) -> str:
    """Return a profile for the axes `dynamic` as a recipe writes it; a size without a guess is MIN, OPT or MAX."""
    usual = usual_ranges(facts.max_sequence)
    guesses = {"batch": in_words(usual["batch"]), "seq": in_words(usual["sequence"])}
    pairs = (
        f"{axis}: {next((guess for part, guess in guesses.items() if part in axis.lower()), '[MIN, OPT, MAX]')}"
        for axis in dynamic
    )
    return "profiles: [{" + ", ".join(pairs) + "}]"
