"""Stated axes: checks the sizes that a profile or a shape of `bench` states against the axes of the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from engine.feasibility import proposals
from engine.feasibility.facts import ModelFacts
from engine.recipe.schema import Range
from engine.runtimes import axes
from engine.text import lists, suggestions

if TYPE_CHECKING:
    from engine.errors import RecipeError
    from engine.recipe.load import LoadedRecipe

Path = tuple[str | int, ...]

_ENDS = ("min", "opt", "max")


def check(loaded: LoadedRecipe, path: Path, sizes: Mapping[str, Range], facts: ModelFacts) -> None:
    """Raise RecipeError for sizes of axes that the model lacks or fixes, for too many tokens, and for missing sizes.

    `path` is the place of the sizes in the recipe. A key of `sizes` is the name of an axis, or an input's axis: `x[2]`.
    """
    named: dict[str, Range] = {}
    following: dict[str, Range] = {}
    for key, axis, extents in axes.located(sizes, facts.axes):
        at = (*path, axes.input_of(key) or key)
        if axis is None:
            raise _no_axis(loaded, path, key, sizes, facts)
        if isinstance(axis, int):
            _refuse_other(loaded, at, f"the model fixes {key} at {axis}", extents, [axis] * 3)
            continue
        stated = following if axis in axes.follow(facts.axes) else named
        if stated.setdefault(axis, extents) != extents:
            what = f"{key} is the model's axis `{axis}`, and two different sizes are stated for that axis"
            raise loaded.error(what, *at, facts=_shapes(facts), hint=f"state one size for `{axis}`")
        longest = facts.max_sequence
        if axis == "sequence" and longest is not None and extents.max > longest:
            what = f"{extents.max} tokens are more than the model has positions for: {longest}"
            raise loaded.error(what, *at, hint=f"at most {longest} is possible")
    missing = [axis for axis in facts.dynamic or () if axis not in named]
    if missing:
        what = f"the model's axis `{missing[0]}` may have any size, and nothing here says which"
        proposal = proposals.profiles(facts, named) if path[0] == "profiles" else f"{axes.as_key(missing[0])}: 1"
        hint = f"write {proposal}" if path[0] == "profiles" else f"add {proposal}"
        raise loaded.error(what, *path, facts=about(facts), hint=hint)
    ends = [{axis: int(getattr(extents, end)) for axis, extents in named.items()} for end in _ENDS]
    for axis, extents in following.items():
        expected = [axes.extent(axis, sizes) for sizes in ends]
        _refuse_other(loaded, path, f"the axis `{axis}` follows from other axes", extents, expected)


def about(facts: ModelFacts) -> list[str]:
    """Return what an error says about the model's axes: the axes of any size and, where it helps, the inputs."""
    dynamic = facts.dynamic
    return [f"its axes of any size: {', '.join(dynamic)}" if dynamic else "all of its axes have a fixed size"]


def _no_axis(loaded: LoadedRecipe, path: Path, key: str, sizes: Mapping[str, Range], facts: ModelFacts) -> RecipeError:
    """Return the error for a key that is no axis of the model."""
    name = axes.input_of(key)
    if name is None:
        hint = suggestions.hint(key, facts.dynamic or ())
        return loaded.error(f"the model has no axis `{key}`", *path, key, facts=about(facts), hint=hint)
    if name not in facts.axes:
        hint = suggestions.hint(name, facts.axes)
        return loaded.error(f"the model has no input `{name}`", *path, name, facts=_shapes(facts), hint=hint)
    count = sum(axes.input_of(each) == name for each in sizes)
    what = f"the input `{name}` has {len(facts.axes[name])} axes, and the recipe gives sizes for {count}"
    hint = f"write {proposals.profiles(facts)}" if path[0] == "profiles" else "give a size for each axis of the input"
    return loaded.error(what, *path, name, facts=_shapes(facts), hint=hint)


def _refuse_other(
    loaded: LoadedRecipe, at: Path, reason: str, extents: Range, expected: list[int | None] | list[int]
) -> None:
    """Raise RecipeError where the stated sizes of an axis differ from the sizes that the axis has."""
    stated = [int(getattr(extents, end)) for end in _ENDS]
    if stated == expected:
        return
    sizes = ", ".join("no whole number" if size is None else str(size) for size in dict.fromkeys(expected))
    shown = ", ".join(map(str, dict.fromkeys(stated)))
    raise loaded.error(f"{reason}, and the recipe says {shown}", *at, hint=f"write {sizes}, or leave the axis out")


def _shapes(facts: ModelFacts) -> list[str]:
    return [f"{name}: {lists.extents(shape)}" for name, shape in facts.axes.items()]
