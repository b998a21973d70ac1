"""Optimization profiles of TensorRT: turns the sizes of axes into the min, opt and max shape of every input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from engine.errors import StepError
from engine.recipe.values import Range
from engine.runtimes import axes
from engine.text import lists

if TYPE_CHECKING:
    from engine.kit.onnx.onnx_files import Input
    from engine.recipe.values import Profile

_BATCH = Range(min=1, opt=1, max=8)
"""The usual range of the axis `batch`, the number of inputs in one call."""
_USUAL_TOKENS, _MOST_TOKENS = 128, 512
"""The usual range of the axis `sequence`: opt is 128, as most texts have fewer tokens; max is 512, BERT's limit."""
_EXAMPLE = Range(min=1, opt=8, max=32)
"""An example of min, opt and max, which an error message shows for an axis that a profile leaves out."""

Shape = tuple[int, ...]
Shapes = Mapping[str, tuple[Shape, Shape, Shape]]
"""The shapes of one profile: input -> (min, opt, max).

`Shapes` leaves out an input whose axes all have a fixed size.
"""


def shapes(inputs: Mapping[str, Input], profiles: Sequence[Profile]) -> list[Shapes]:
    """Return the min, opt and max shapes of the inputs for each profile.

    Without profiles, the result for a model whose axes all have a fixed size is a list with one empty mapping.

    Raises StepError where a profile leaves out an axis of the model that may have any size, or names an axis that the
    model lacks.
    """
    return [_shapes(inputs, profile) for profile in profiles or ({},)]


def greatest(profiles: Sequence[Profile]) -> dict[str, int]:
    """Return for each axis the largest size that any profile allows; the keys are those of the profiles."""
    sizes: dict[str, int] = {}
    for profile in profiles:
        for axis, extent in profile.items():
            sizes[axis] = max(sizes.get(axis, 0), int(extent.max))
    return sizes


def fixed(profiles: Sequence[Profile]) -> list[dict[str, int]]:
    """Return the size of each axis for each profile that has one size for every axis."""
    return [
        {axis: int(extent.opt) for axis, extent in profile.items()}
        for profile in profiles
        if profile and all(extent.min == extent.max for extent in profile.values())
    ]


def extents(profiles: Sequence[Profile]) -> dict[str, tuple[int, ...]]:
    """Return for each axis the sizes that profiles name as `opt` or `max`, the smallest first."""
    sizes: dict[str, set[int]] = {}
    for profile in profiles:
        for axis, extent in profile.items():
            sizes.setdefault(axis, set()).update((int(extent.opt), int(extent.max)))
    return {axis: tuple(sorted(values)) for axis, values in sizes.items()}


def usual(free: Sequence[str], longest: int | None) -> tuple[Profile, ...]:
    """Return the usual profile for the axes `batch` and `sequence`; no profile where another axis is free.

    The usual profile takes 1 to 8 inputs at once, each of 1 to 512 tokens, or of 1 to `longest` tokens where `longest`
    is less than 512.
    """
    if not free or not set(free) <= {"batch", "sequence"}:
        return ()
    ranges = usual_ranges(longest)
    return ({axis: ranges[axis] for axis in free},)


def usual_ranges(longest: int | None) -> Profile:
    """Return the usual profile of the axes `batch` and `sequence`; `longest` is the model's limit of tokens."""
    most = min(_MOST_TOKENS, longest or _MOST_TOKENS)
    return {"batch": _BATCH, "sequence": Range(min=1, opt=min(_USUAL_TOKENS, most), max=most)}


def in_words(extent: Range) -> str:
    """Return a range of sizes (min, opt, max) as a recipe writes it, for example `[1, 8, 32]`."""
    return f"[{extent.min}, {extent.opt}, {extent.max}]"


def within(shape: Sequence[int], least: Sequence[int], greatest: Sequence[int]) -> bool:
    """Tell whether a shape has the rank of a profile's shapes, and every extent lies within the profile's bounds."""
    bounds = list(zip(least, greatest, strict=True))
    return len(shape) == len(bounds) and all(
        low <= size <= high for size, (low, high) in zip(shape, bounds, strict=True)
    )


def _shapes(inputs: Mapping[str, Input], profile: Profile) -> Shapes:
    free, profile = set(axes.free(axes.shapes(inputs))), axes.by_name(profile, axes.shapes(inputs))
    missing, unknown = sorted(free - set(profile)), sorted(set(profile) - free)
    if missing or unknown:
        what = (
            f"a profile leaves open: {', '.join(missing)}"
            if missing
            else f"a profile names an axis that the model does not have: {', '.join(unknown)}"
        )
        ranges = ", ".join(f"{axes.as_key(axis)}: {in_words(profile.get(axis, _EXAMPLE))}" for axis in sorted(free))
        facts = [f"{name}: {' x '.join(map(str, value.shape))}" for name, value in inputs.items()]
        raise StepError(what, facts, f"a profile of this model says {{{ranges}}}" if free else "take the profiles out")
    return {
        name: (_extents(value, profile, "min"), _extents(value, profile, "opt"), _extents(value, profile, "max"))
        for name, value in inputs.items()
        if any(isinstance(axis, str) for axis in value.shape)
    }


def _extents(value: Input, profile: Profile, end: str) -> Shape:
    sizes = {axis: int(getattr(extents, end)) for axis, extents in profile.items()}
    shape = [axes.extent(axis, sizes) for axis in value.shape]
    if None in shape:
        facts = [f"{name}: {size}" for name, size in sizes.items()]
        what = f"no whole size of the input {value.name} follows from the profile's {end}: {lists.extents(value.shape)}"
        raise StepError(what, facts, f"choose other sizes for the {end} of the profile")
    return tuple(size for size in shape if size is not None)
