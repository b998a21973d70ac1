"""Threads: with how many a recipe's models are measured and served; they should be the same number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.text import lists

if TYPE_CHECKING:
    from engine.recipe.schema import Recipe


def packaged_threads(recipe: Recipe) -> int | None:
    """Return the threads that a recipe's package gives an instance of its model; None where its runtime chooses."""
    triton = recipe.package.triton
    parameters = (triton.model_extra or {}).get("parameters") or {}
    stated = (parameters.get(recipe.runtime.threads_in_triton) or {}).get("string_value")
    return int(stated) if stated and stated.isdecimal() else triton.threads


def measured_threads(recipe: Recipe) -> int | None:
    """Return the threads with which the models of a recipe are measured; None for the physical cores of the CPU."""
    stated = None if recipe.bench is None else recipe.bench.threads
    return stated or packaged_threads(recipe)


def other_threads(recipe: Recipe, measured: int) -> str:
    """Return that a model is served with another number of threads than it was `measured` with; "" where it is not."""
    packaged, stated = packaged_threads(recipe), recipe.bench is not None and recipe.bench.threads is not None
    if packaged == measured or (packaged is None and not stated):
        return ""
    served = "leaves their number to the runtime" if packaged is None else f"has {packaged}"
    return f"measured with {lists.counted(measured, 'thread')}; the package {served}: package.triton.threads"
