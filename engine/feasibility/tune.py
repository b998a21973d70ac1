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
        if not is_known(path):
            what, hint = f"`tune.over` names `{name}`, a field that no recipe has", suggestion(path)
            raise loaded.error(what, "tune", "over", name, hint=hint, at_key=True)
        if path[0] in _FIXED:
            what = f"`tune.over` names `{name}`, which every trial has in common"
            hint = "a search changes fields such as target.runtime, precision or quantize.weights_only"
            raise loaded.error(what, "tune", "over", name, hint=hint, at_key=True)
        values = loaded.root.find(("tune", "over", name))
        for value in (values and values.items) or ():
            loaded.refuse_value(path, value)
