"""Recipes that one Triton server cannot serve together are refused before anything is built."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.builder.variant import PlannedVariant


def refuse(variants: Sequence[PlannedVariant], *, apart: str) -> None:
    """Raise RecipeError for a recipe that Triton cannot serve, and for two packages whose models have one name.

    `apart` is the command's own hint, beside another name for one of the models.
    """
    from engine.runtimes import registry

    owners: dict[str, PlannedVariant] = {}
    for variant in variants:
        recipe = variant.loaded.recipe
        runtime = registry.of(recipe)
        if not runtime.loads_in_triton:
            hint = "use runtime: tensorrt for a package that Triton serves"
            raise variant.loaded.error(runtime.not_triton, "target", "runtime", hint=hint)
        name = recipe.package.triton.name or recipe.name
        if name in owners:
            first = owners[name].loaded
            facts = [f"the other one: {owners[name].name}, {first.position('package', 'triton', 'name') or first.path}"]
            what = f"two packages hold a model called {name!r}"
            hint = f"set package.triton.name to another in one of them, or {apart}"
            raise variant.loaded.error(what, "package", "triton", "name", facts=facts, hint=hint)
        owners[name] = variant
