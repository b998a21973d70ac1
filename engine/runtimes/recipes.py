"""Views of a recipe: protocols with the fields that runtimes read; importing the recipe's classes would be circular."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, Self

from engine.errors import RecipeError

IN_PROCESS = "in-process"
"""The way of `bench.via` that runs the model inside the benchmarking process; all other ways use a server."""


def served(recipe: RecipeView) -> bool:
    """Return whether the bench of a recipe measures through a server."""
    return recipe.bench is not None and any(way != IN_PROCESS for way in recipe.bench.via)


class TargetView(Protocol):
    """The fields of a recipe's section `target` (`engine.recipe.schema.TargetSection`)."""

    @property
    def device(self) -> str | tuple[str, ...]:
        """The device's name; a tuple of names for an engine that runs on several devices."""

    @property
    def devices(self) -> tuple[str, ...]:
        """The names of all devices: a tuple of one name where `device` is a single name."""

    @property
    def runtime(self) -> str:
        """The runtime's name."""

    @property
    def provider(self) -> str | None:
        """The execution provider of ONNX Runtime; None where the recipe names no provider."""


class RecipeView(Protocol):
    """The fields of one variant of a recipe (`engine.recipe.schema.Recipe`)."""

    @property
    def target(self) -> TargetView:
        """The section `target`: device, runtime and provider."""

    @property
    def model(self) -> Any:
        """The section `model` of the recipe."""

    @property
    def precision(self) -> str:
        """The precision of the build: "fp32", "fp16", "int8", ..."""

    @property
    def tf32(self) -> bool | None:
        """Whether a GPU may compute the products of fp32 in TF32; None for the default of the runtime."""

    @property
    def quantize(self) -> Any:
        """The section `quantize`: how the precision of a model for a CPU is lowered."""

    @property
    def profiles(self) -> Sequence[Mapping[str, Any]]:
        """The profiles of the recipe: each profile maps the name of an axis to its min, opt and max."""

    @property
    def shape_values(self) -> Sequence[Mapping[str, Any]]:
        """For each profile: the name of an input -> the min, opt and max of its values; empty where none are stated."""

    @property
    def runtimes(self) -> Mapping[str, Mapping[str, Any]]:
        """The section `runtimes`: options by the name of a runtime of another package."""

    @property
    def tensorrt(self) -> Any:
        """The section `tensorrt`: the options of TensorRT's builder that the recipe sets."""

    @property
    def bench(self) -> Any:
        """The section `bench` of the recipe; None where the recipe measures nothing."""

    @property
    def package(self) -> Any:
        """The section `package`."""

    def as_run_by(self, runtime: str) -> Self:
        """Return the recipe as if it named one of the runtimes for which its own one stands."""


class LoadedRecipeView(Protocol):
    """A recipe with the line and column of each of its fields (`engine.recipe.load.LoadedRecipe`)."""

    @property
    def recipe(self) -> Any:
        """The recipe itself."""

    def error(
        self, what: str, *path: str | int, facts: Sequence[str] = (), hint: str = "", at_key: bool = False
    ) -> RecipeError:
        """Return a RecipeError about a field of the recipe, with the place of the field in the file.

        The error names the line of the field; where the recipe does not set the field, the line of the nearest section
        around the field.
        """

    def position(self, *path: str | int) -> object | None:
        """Return the place of a field in the recipe; None where the recipe does not set the field."""


class ExecutionView(Protocol):
    """How a model is run: the fields that a runtime reads of `engine.runtimes.execution.Execution`."""

    @property
    def runtime(self) -> str:
        """The runtime's name."""

    @property
    def on_gpu(self) -> bool:
        """Whether a GPU runs the model."""

    @property
    def hardware(self) -> Any:
        """The GPU that runs the model; None for a CPU, and for a job whose result is the same on every GPU."""

    @property
    def options(self) -> Mapping[str, Any]:
        """The options of the runtime as JSON values, as the method `execution` of its class returns them."""

    @property
    def by(self) -> Any:
        """The runtime."""

    def as_run_by(self, runtime: str) -> Self:
        """Return how one of several runtimes runs its model, for an execution with the options of each of them."""

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy of the execution in which the fields of `update` have new values."""
