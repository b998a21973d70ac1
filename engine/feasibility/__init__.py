"""Feasibility: refuses, before the build, a recipe that the hardware or the model does not allow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.feasibility import options, precision, sample_lengths, serving, shapes, target
from engine.feasibility.model import check_model
from engine.feasibility.shapes import profiles, usual
from engine.recipe import supported

if TYPE_CHECKING:
    from engine.recipe.load import LoadedRecipe

__all__ = ["check", "check_model", "profiles", "usual"]


def check(loaded: LoadedRecipe) -> None:
    """Raise RecipeError where the recipe asks for something that the target cannot do, or that no step supports yet."""
    devices = target.check(loaded)
    precision.check(loaded, devices)
    options.check(loaded, devices)
    serving.check(loaded)
    shapes.check(loaded)
    sample_lengths.check(loaded)
    supported.check(loaded)
