"""Options of runtimes: refuses options without effect, and values that the runtime does not allow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from engine.runtimes import registry

if TYPE_CHECKING:
    from engine.gpus import Gpu
    from engine.recipe.load import LoadedRecipe

_SECTIONS = ("tensorrt",)
"""Sections of a recipe that hold nothing but options of a runtime."""


def check(loaded: LoadedRecipe, devices: Sequence[Gpu]) -> None:
    """Raise RecipeError at the first option of the recipe that its runtime ignores or does not allow."""
    recipe, runtime = loaded.recipe, registry.of(loaded.recipe)
    for section in _SECTIONS:
        if getattr(recipe, section) and section not in runtime.sections(recipe.target):
            provider = f" with the provider {recipe.target.provider or 'cpu'}"
            uses = f"{runtime.name}{provider if runtime.providers else ''}"
            what = f"`{section}` has options for a runtime that this recipe does not use: it uses {uses}"
            raise loaded.error(what, section, hint=f"leave the section out (`{section}: null` over a parent's)")
    for name in recipe.runtimes:
        if name != runtime.name:
            what = f"`runtimes.{name}` has options for a runtime that this recipe does not use: it uses {runtime.name}"
            raise loaded.error(what, "runtimes", name, hint="leave them out")
    _own(loaded)
    runtime.refuse_options(loaded, devices)


def _own(loaded: LoadedRecipe) -> None:
    """Check the options under `runtimes` with the runtime's `options_model`."""
    runtime = registry.of(loaded.recipe)
    options = loaded.recipe.runtimes.get(runtime.name)
    if options is None:
        return
    if runtime.options_model is None:
        what = f"the runtime {runtime.name} takes no options under `runtimes`"
        raise loaded.error(what, "runtimes", runtime.name, hint="leave them out")
    from pydantic import ValidationError

    try:
        runtime.options_model.model_validate(options)
    except ValidationError as error:
        raise loaded.complaint(error, "runtimes", runtime.name) from None
