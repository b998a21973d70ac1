"""Serving: the options of a recipe that decide how Triton serves its model, in a package and in a measurement."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from engine import tasks
from engine.kit.choice import layouts
from engine.kit.triton import warmups
from engine.recipe.image_input import Images
from engine.recipe.model_config import PartName
from engine.recipe.postprocessing import Postprocess
from engine.recipe.values import Profile
from engine.runtimes.execution import Execution
from engine.runtimes.profiles import extents, greatest
from engine.step import Frozen

if TYPE_CHECKING:
    from engine.recipe.schema import Recipe

ENSEMBLE, FUSED, AUTO = "ensemble", "fused", "auto"
"""The layouts of a package: models behind an ensemble, one Python model, or the faster of the two as measured."""
NAMED = "engine.kit.triton.answers.named"
"""The module that makes the answers which a recipe names; its code counts only in the keys of such recipes."""
NO_PADDING, BUCKETS = "none", "buckets"
"""How a package pads texts: to the longest text of a request, or to the sizes in the profiles; or AUTO."""


class Serving(Frozen):
    """The options with which a job writes a model repository; the options are rows of the job's key."""

    model_name: str
    ensemble: str
    tokenizer: bool = True
    postprocess: bool = True
    """Whether clients get answers to the model's task, such as labels; otherwise clients get the model's outputs."""
    layout: str = ENSEMBLE
    padding: str = NO_PADDING
    lengths: Mapping[str, tuple[int, ...]] = {}
    """Name of an axis -> its sizes in the profiles, for a package that may pad texts to them."""
    profiles: tuple[Profile, ...] = ()
    """The recipe's profiles, for a package that may be one Python model on a GPU: it pads to those of one size."""
    max_batch_size: int | None = None
    largest: Mapping[str, int] = {}
    """Name of an axis -> the greatest extent of the axis in any profile."""
    threads: int | None = None
    """The threads with which an instance of a model on a CPU computes; None for the default of Triton's backend."""
    task: str | None = None
    images: Images | None = None
    """For a model of timm: how image files become the model's input tensor."""
    preprocess: Mapping[str, Any] = {}
    """The recipe's section of that name: what replaces the settings of the model's own files."""
    named: Postprocess | None = None
    """The post-processing that the recipe names for the outputs of an ONNX file, in place of its task's."""
    execution: Execution = Execution()
    """How the built model is run: its runtime and the runtime's options, equal for all devices of one kind."""
    fields: Mapping[str, Any] = {}
    """Fields of Triton's ModelConfig that the recipe sets for the main model of the package."""
    models: Mapping[PartName, Mapping[str, Any]] = {}
    """Fields of Triton's ModelConfig that the recipe sets for the other models of the package."""
    answers: Mapping[str, Any] = {}
    """The options of answers that differ from their defaults."""
    max_text_bytes: int | None = None
    """The most bytes of one text of a request; None where the recipe names no limit."""
    max_new_tokens: int | None = None
    """Upper limit of the tokens of a generated answer; None where the recipe names no limit."""

    @classmethod
    def for_recipe(cls, recipe: Recipe) -> Self:
        """Return the options that a recipe sets for its model repository."""
        triton = recipe.package.triton
        name = triton.name or recipe.name
        task = tasks.known(recipe.model.task)
        file_names = warmups.names(recipe)
        return cls(
            model_name=name,
            ensemble=triton.ensemble or f"{name}_{tasks.input_word(task, images=recipe.images is not None)}",
            tokenizer=triton.tokenizer,
            postprocess=triton.postprocess,
            layout=triton.layout,
            padding=triton.padding,
            lengths={} if triton.padding == NO_PADDING else extents(recipe.profiles),
            profiles=recipe.profiles if triton.layout != ENSEMBLE and recipe.target.device != "cpu" else (),
            answers=recipe.package.answers.model_dump(mode="json", exclude_defaults=True),
            max_batch_size=triton.max_batch_size,
            max_text_bytes=triton.max_text_bytes,
            largest=greatest(recipe.profiles),
            threads=triton.threads,
            task=recipe.model.task,
            images=recipe.images,
            preprocess=recipe.preprocess,
            named=recipe.postprocess,
            execution=Execution.for_recipe(recipe).anywhere(),
            fields=warmups.renamed(triton.model_extra or {}, file_names),
            models={part: warmups.renamed(overrides, file_names) for part, overrides in triton.models.items()},
            max_new_tokens=recipe.generate.get("max_new_tokens"),
        )

    def of_model(self, directory: Path) -> Self:
        """Return how the built model in `directory` is served: in the runtime, layout and padding that were chosen."""
        update: dict[str, Any] = {"execution": self.execution.of_model(directory)}
        if AUTO in {self.layout, self.padding}:
            update["layout"], update["padding"] = layouts.read(directory)
        return self.model_copy(update=update)

    def code_used(self) -> tuple[str, ...]:
        """Return the modules whose code the job's key contains: modules of the runtime, the task and its answers."""
        named = () if self.named is None else (NAMED,)
        return (*self.execution.code_to_serve, *tasks.modules(self.task), *tasks.makers(self.task), *named)
