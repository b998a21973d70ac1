"""Stated values: checks the values of inputs that a profile states against the inputs of the model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.text import lists, suggestions

if TYPE_CHECKING:
    from engine.feasibility.facts import Axes, ModelFacts
    from engine.recipe.load import LoadedRecipe

_TYPES = ("int32", "int64")
"""The types that TensorRT takes for a shape tensor (NVIDIA, "Working with Dynamic Shapes")."""
_MOST_AXES = 1


def check(loaded: LoadedRecipe, facts: ModelFacts) -> None:
    """Raise RecipeError for values of an input that the model lacks, or that cannot be a shape tensor in TensorRT.

    A shape tensor has whole numbers and at most one axis, whose size the model fixes.
    """
    for number, values in enumerate(loaded.recipe.shape_values):
        for name, stated in values.items():
            at = ("profiles", number, name)
            if name not in facts.axes:
                hint = suggestions.hint(name, facts.axes)
                raise loaded.error(f"the model has no input `{name}`", *at, facts=_inputs(facts), hint=hint)
            shape = facts.axes[name]
            if why := _no_shape_tensor(shape, facts.types.get(name)):
                what = f"a profile states the values of `{name}`, {why}"
                hint = "a profile states values of whole numbers, without axes or with one axis of a fixed size"
                raise loaded.error(what, *at, facts=_inputs(facts), hint=hint)
            count = int(shape[0]) if shape else 1
            if len(stated.opt) != count:
                what = (
                    f"the input `{name}` has {lists.counted(count, 'value')}, and the recipe states {len(stated.opt)}"
                )
                raise loaded.error(what, *at, facts=_inputs(facts))


def _no_shape_tensor(shape: Axes, dtype: str | None) -> str:
    """Return why an input cannot be a shape tensor; "" where it can."""
    if dtype is not None and dtype not in _TYPES:
        return f"which is {dtype}"
    if len(shape) > _MOST_AXES:
        return f"which has {len(shape)} axes"
    return "" if all(isinstance(size, int) for size in shape) else "which may have any number of values"


def _inputs(facts: ModelFacts) -> list[str]:
    return [f"{name}: {facts.types.get(name, '')}{lists.extents(shape)}" for name, shape in facts.axes.items()]
