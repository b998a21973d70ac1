"""Stated axes: checks the sizes that a profile or a shape of `bench` states against the axes of the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from engine.feasibility import proposals
from engine.recipe.values import Range
from engine.runtimes import axes
from engine.text import lists, suggestions

if TYPE_CHECKING:
    from engine.errors import RecipeError
    from engine.feasibility.facts import ModelFacts
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
            if _ends(extents) != [axis] * len(_ENDS):
                what = f"the model fixes the axis {key} at {axis}, and the recipe says {_shown(_ends(extents))}"
                raise loaded.error(what, *at, facts=_shapes(facts), hint=_proposal(path, sizes, facts))
            continue
        stated = following if axis in axes.follow(facts.axes) else named
        if stated.setdefault(axis, extents) != extents:
            what = f"{key} is the model's axis `{axis}`, and the recipe gives that axis two different sizes"
            raise loaded.error(what, *at, facts=_shapes(facts), hint=_proposal(path, sizes, facts))
        longest = facts.max_sequence
        if axis == "sequence" and longest is not None and extents.max > longest:
            what = f"{extents.max} tokens are more than the model has positions for: {longest}"
            raise loaded.error(what, *at, hint=f"at most {longest} is possible")
    missing = [axis for axis in facts.dynamic or () if axis not in named]
    if missing:
        what = f"the model's axis `{missing[0]}` may have any size, and nothing here says which"
        raise loaded.error(what, *path, facts=about(facts), hint=_proposal(path, sizes, facts))
    _check_following(loaded, path, sizes, facts, named=named, following=following)


def about(facts: ModelFacts) -> list[str]:
    """Return what an error says about the model's axes."""
    dynamic = facts.dynamic
    return [f"its axes of any size: {', '.join(dynamic)}" if dynamic else "all of its axes have a fixed size"]


def _check_following(
    loaded: LoadedRecipe,
    path: Path,
    sizes: Mapping[str, Range],
    facts: ModelFacts,
    *,
    named: Mapping[str, Range],
    following: Mapping[str, Range],
) -> None:
    """Raise RecipeError where an axis such as `past + 1` is given a size that does not follow from the other axes."""
    ends = [{axis: int(getattr(extents, end)) for axis, extents in named.items()} for end in _ENDS]
    for axis, extents in following.items():
        expected = [axes.extent(axis, end) for end in ends]
        if _ends(extents) != expected:
            what = f"the axis `{axis}` follows from other axes: {_shown(expected)}; the recipe says "
            shown = _shown(_ends(extents))
            raise loaded.error(what + shown, *path, facts=_shapes(facts), hint=_proposal(path, sizes, facts))


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
    return loaded.error(what, *path, name, facts=_shapes(facts), hint=_proposal(path, sizes, facts))


def _proposal(path: Path, sizes: Mapping[str, Range], facts: ModelFacts) -> str:
    """Return the hint with a whole profile, or a whole shape of `bench`, that keeps the sizes which fit the model."""
    kept = axes.by_name(sizes, facts.axes)
    proposal = proposals.profiles(facts, kept) if path[0] == "profiles" else proposals.shape(facts, kept)
    return f"write {proposal}" if facts.dynamic else f"leave {path[0]} out: every axis of the model has a fixed size"


def _ends(extents: Range) -> list[int]:
    return [int(getattr(extents, end)) for end in _ENDS]


def _shown(sizes: Sequence[int | None]) -> str:
    return ", ".join("no whole number" if size is None else str(size) for size in dict.fromkeys(sizes))


def _shapes(facts: ModelFacts) -> list[str]:
    return [f"{name}: {lists.extents(shape)}" for name, shape in facts.axes.items()]
