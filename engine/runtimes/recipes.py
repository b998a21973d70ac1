"""Views: protocols with the fields that a runtime reads of a recipe, since the recipe's classes import the runtimes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, Self

from engine.errors import RecipeError


class TargetView(Protocol):
    """The fields of a recipe's section `target` (`engine.recipe.schema.TargetSection`)."""

    @property
    def device(self) -> str | tuple[str, ...]:
        """The device's name; a tuple of names for an engine that runs on several devices."""

    @property
    def devices(self) -> tuple[str, ...]:
        """The names of all devices, also where `device` is a single name."""

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
    def precision(self) -> str:
        """The precision of the build: "fp32", "fp16", "int8", ..."""

    @property
    def profiles(self) -> Sequence[Mapping[str, Any]]:
        """The profiles: each maps an axis to its min, opt and max."""

    @property
    def runtimes(self) -> Mapping[str, Mapping[str, Any]]:
        """The section `runtimes`: options by the name of a runtime of another package."""

    @property
    def tensorrt(self) -> Any:
        """The section `tensorrt`: the options of TensorRT's builder that the recipe sets."""

    @property
    def bench(self) -> Any:
        """The section `bench`; None where nothing is measured."""

    @property
    def package(self) -> Any:
        """The section `package`."""


class LoadedRecipeView(Protocol):
    """A recipe with the line and column of each of its fields (`engine.recipe.load.LoadedRecipe`)."""

    @property
    def recipe(self) -> Any:
        """The recipe itself."""

    def error(
        self, what: str, *path: str | int, facts: Sequence[str] = (), hint: str = "", at_key: bool = False
    ) -> RecipeError:
        """Return an error about a field.

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
        """The GPU; None for a CPU, and for a job whose result is the same on every GPU."""

    @property
    def options(self) -> Mapping[str, Any]:
        """The options that the runtime's method `execution` returns."""

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy of the execution in which the fields of `update` have new values."""
