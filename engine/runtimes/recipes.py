"""What a runtime reads of a recipe and of how it is run: the schema lies above, and asks for the runtimes' names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, Self

from engine.errors import RecipeError


class TargetView(Protocol):
    """The section `target` of a recipe."""

    @property
    def device(self) -> str | tuple[str, ...]:
        """One name, or several that one engine is for."""

    @property
    def devices(self) -> tuple[str, ...]:
        """The names of all devices."""

    @property
    def runtime(self) -> str:
        """The runtime's name."""

    @property
    def provider(self) -> str | None:
        """The provider, where the recipe says one."""


class RecipeView(Protocol):
    """One variant of a recipe; the fields are those of `engine.recipe.schema.Recipe`."""

    @property
    def target(self) -> TargetView:
        """What the package is for."""

    @property
    def precision(self) -> str:
        """The precision of the build."""

    @property
    def profiles(self) -> Sequence[Mapping[str, Any]]:
        """The extents of each axis, by profile."""

    @property
    def runtimes(self) -> Mapping[str, Mapping[str, Any]]:
        """Options of runtimes that other packages bring."""

    @property
    def tensorrt(self) -> Any:
        """Options of TensorRT's builder, those that the recipe says."""

    @property
    def bench(self) -> Any:
        """What is measured; None where nothing is."""

    @property
    def package(self) -> Any:
        """What is handed over."""


class LoadedRecipeView(Protocol):
    """A recipe with the places of all that it says."""

    @property
    def recipe(self) -> Any:
        """The recipe, as the schema has it."""

    def error(
        self, what: str, *path: str | int, facts: Sequence[str] = (), hint: str = "", at_key: bool = False
    ) -> RecipeError:
        """Return the error about a field, at its place or at that of the nearest section around it."""

    def position(self, *path: str | int) -> object | None:
        """Return where a field is said; None where it is not."""


class ExecutionView(Protocol):
    """How a model is run: `engine.runtimes.execution.Execution`."""

    @property
    def runtime(self) -> str:
        """The runtime's name."""

    @property
    def on_gpu(self) -> bool:
        """Whether a GPU runs it."""

    @property
    def hardware(self) -> Any:
        """The GPU; None for a CPU, and for what is the same on whichever GPU."""

    @property
    def options(self) -> Mapping[str, Any]:
        """As the runtime's `execution` gives them."""

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return it with other fields."""
