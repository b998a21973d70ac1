"""The way in which the bench of a recipe measures: in its own process, or through a server."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.recipe.schema import Recipe

IN_PROCESS = "in-process"
"""The way of `bench.via` that runs the model inside the benchmarking process; all other ways use a server."""


def served(recipe: Recipe) -> bool:
    """Return whether the bench of a recipe measures through a server."""
    return recipe.bench is not None and any(way != IN_PROCESS for way in recipe.bench.via)
