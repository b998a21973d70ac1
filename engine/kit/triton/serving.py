"""Serving: what of a recipe decides how its model is served, the same for a package and for a measured server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from engine.kit.execution import Execution
from engine.recipe.schema import Recipe, Task
from engine.step import Frozen


class Serving(Frozen):
    """The options of a model repository."""

    model_name: str
    ensemble: str
    tokenizer: bool = True
    max_batch_size: int | None = None
    largest: Mapping[str, int] = {}
    """Axis -> the most that any profile allows."""
    task: Task | None = None
    execution: Execution = Execution()
    """How the model is run, on whichever device of its kind."""
    fields: Mapping[str, Any] = {}
    """Fields of Triton's ModelConfig, verbatim."""

    @classmethod
    def for_recipe(cls, recipe: Recipe) -> Self:
        """Return how a recipe's model is served."""
        said = recipe.package.triton
        name = said.name or recipe.name
        largest: dict[str, int] = {}
        for profile in recipe.profiles:
            for axis, extent in profile.items():
                largest[axis] = max(largest.get(axis, 0), int(extent.max))
        return cls(
            model_name=name,
            ensemble=said.ensemble or f"{name}_text",
            tokenizer=said.tokenizer,
            max_batch_size=said.max_batch_size,
            largest=largest,
            task=recipe.model.task,
            execution=Execution.for_recipe(recipe).anywhere(),
            fields=said.model_extra or {},
        )
