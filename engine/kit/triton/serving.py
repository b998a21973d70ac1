"""Serving: what of a recipe decides how its model is served, the same for a package and for a measured server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from engine import tasks
from engine.kit.triton import warmups
from engine.recipe import images
from engine.recipe.images import Images
from engine.recipe.model_config import Part
from engine.recipe.schema import Recipe
from engine.runtimes.execution import Execution
from engine.step import Frozen


class Serving(Frozen):
    """The options of a model repository."""

    model_name: str
    ensemble: str
    tokenizer: bool = True
    postprocess: bool = True
    """Whether clients get answers to the model's task, made of its outputs, or the outputs themselves."""
    max_batch_size: int | None = None
    largest: Mapping[str, int] = {}
    """Axis -> the most that any profile allows."""
    task: str | None = None
    images: Images | None = None
    """How images come to the model, for one of timm."""
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    """Of the images' channels, where the recipe says so."""
    execution: Execution = Execution()
    """How the model is run, on whichever device of its kind."""
    fields: Mapping[str, Any] = {}
    """Fields of Triton's ModelConfig for the model itself, verbatim."""
    models: Mapping[Part, Mapping[str, Any]] = {}
    """The same for the other models of the package."""
    max_new_tokens: int | None = None
    """The most tokens of a generated answer; None where the recipe does not say."""

    @classmethod
    def for_recipe(cls, recipe: Recipe) -> Self:
        """Return how a recipe's model is served."""
        said = recipe.package.triton
        name = said.name or recipe.name
        pixels = images.of_recipe(recipe)
        largest: dict[str, int] = {}
        called = warmups.names(recipe)
        for profile in recipe.profiles:
            for axis, extent in profile.items():
                largest[axis] = max(largest.get(axis, 0), int(extent.max))
        return cls(
            model_name=name,
            ensemble=said.ensemble or f"{name}_{_kind(recipe)}",
            tokenizer=said.tokenizer,
            postprocess=said.postprocess,
            max_batch_size=said.max_batch_size,
            largest=largest,
            task=recipe.model.task,
            images=pixels,
            mean=recipe.preprocess.get("mean", ()),
            std=recipe.preprocess.get("std", ()),
            execution=Execution.for_recipe(recipe).anywhere(),
            fields=warmups.renamed(said.model_extra or {}, called),
            models={part: warmups.renamed(overrides, called) for part, overrides in said.models.items()},
            max_new_tokens=recipe.generate.get("max_new_tokens"),
        )

    def code_used(self) -> tuple[str, ...]:
        """Return the modules of the runtime, of the model's task, and of what makes the answers to it."""
        return (*self.execution.code_to_serve, *tasks.modules(self.task), *tasks.makers(self.task))


def _kind(recipe: Recipe) -> str:
    """Return what clients send, for a name."""
    task = tasks.known(recipe.model.task)
    modality = images.modality(images.of_recipe(recipe)) if task is None else task.modality
    return modality.value
