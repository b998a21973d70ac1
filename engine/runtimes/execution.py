"""Execution: what runs the built model of a recipe, where, and all that its answers and latencies depend on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from engine.recipe.schema import Recipe
from engine.runtimes import hardware as gpus
from engine.runtimes import registry
from engine.runtimes.runtime import Runtime
from engine.step import Frozen, Hardware


class Execution(Frozen):
    """A runtime with its options. Only those that it has are set: the others must not change a key."""

    runtime: str = "onnxruntime"
    on_gpu: bool = False
    hardware: Hardware | None = None
    """The GPU that runs the model; None for a CPU, and for what is the same on whichever GPU."""
    options: Mapping[str, Any] = {"provider": "cpu"}
    """As the runtime's `execution` gives them."""

    @classmethod
    def for_recipe(cls, recipe: Recipe) -> Self:
        """Return how the model of a recipe is run."""
        runtime = registry.of(recipe)
        gpu = gpus.wanted(recipe)
        return cls(
            runtime=runtime.name,
            on_gpu=gpu is not None,
            hardware=gpu,
            options=dict(runtime.execution(recipe)),
        )

    def anywhere(self) -> Self:
        """Return it without the device, for what is the same whichever one it is."""
        return self.model_copy(update={"hardware": None})

    @property
    def by(self) -> Runtime:
        """The runtime."""
        return registry.find(self.runtime)

    @property
    def tools(self) -> tuple[str, ...]:
        """The distributions that run it."""
        return self.by.tools(self)

    @property
    def facts(self) -> tuple[str, ...]:
        """What chooses the kernels."""
        return self.by.facts(self)

    @property
    def code(self) -> tuple[str, ...]:
        """The modules that run it, whose code counts in the keys of jobs that do."""
        return self.by.code()

    @property
    def code_to_serve(self) -> tuple[str, ...]:
        """The modules that say how it is served, whose code counts in the keys of packages."""
        return self.by.code_to_serve()
