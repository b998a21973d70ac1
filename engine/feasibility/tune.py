"""The fields that a search may change: those of the recipe that shape the model or how it is served."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.recipe.outline import is_known, suggestion

if TYPE_CHECKING:
    from engine.recipe.load import LoadedRecipe

_FIXED = ("abstract", "bench", "extends", "matrix", "model", "name", "recipe", "steps", "tune", "validate")
"""Sections that say what is built, how it is judged and how it is measured: a search compares models under these."""


def check(loaded: LoadedRecipe) -> None:
    """Raise RecipeError for a field in `tune.over` that a search cannot change, or a value that no field can have."""
    if loaded.recipe.tune is None:
        return
    for name in loaded.recipe.tune.over:
        path = tuple(name.split("."))
        why, hint = "a field that no recipe has", suggestion(path)
        if path[0] in _FIXED:
            why, hint = "which every trial has in common", "name target.runtime, precision or quantize.weights_only"
        if path[0] in _FIXED or not is_known(path):
            raise loaded.error(f"`tune.over` names `{name}`, {why}", "tune", "over", name, hint=hint, at_key=True)
        values = loaded.root.find(("tune", "over", name))
        for value in (values and values.items) or ():
            loaded.refuse_value(path, value)
