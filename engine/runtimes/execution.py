"""Execution: the runtime, the device and the options with which the built model of a recipe is run."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from engine.runtimes import registry
from engine.runtimes.runtime import Runtime
from engine.step import Frozen, Hardware

if TYPE_CHECKING:
    from engine.recipe.schema import Recipe


class Execution(Frozen):
    """How a built model is run: a runtime, its options, and the GPU.

    `options` has no option of a runtime other than `runtime`, since every option changes keys.
    """

    runtime: str = "onnxruntime"
    on_gpu: bool = False
    hardware: Hardware | None = None
    """The GPU that runs the model; None for a CPU, and for a job whose result is the same on every GPU."""
    options: Mapping[str, Any] = {"provider": "cpu"}
    """The options of the runtime as JSON values, as the method `execution` of its class returns them."""

    @classmethod
    def for_recipe(cls, recipe: Recipe) -> Self:
        """Return how a recipe's built model is run: the runtime, the hardware and the options.

        Only planning calls this: the name of the imported module is computed, so that no key covers the catalogue.
        """
        runtime = recipe.runtime
        gpu = import_module(f"{__package__}.requirements").required(recipe)
        return cls(
            runtime=runtime.name,
            on_gpu=gpu is not None,
            hardware=gpu,
            options=dict(runtime.execution(recipe)),
        )

    def anywhere(self) -> Self:
        """Return a copy of this execution without the GPU, for a job whose result is the same on every GPU."""
        return self.model_copy(update={"hardware": None})

    def as_run_by(self, runtime: str) -> Self:
        """Return how one of several runtimes runs its model, for an execution with the options of each of them."""
        hardware = None if self.hardware is None else self.hardware.driven_for(runtime)
        return self.model_copy(update={"runtime": runtime, "options": self.options[runtime], "hardware": hardware})

    def of_model(self, directory: Path) -> Self:
        """Return how the built model in `directory` is run: by the runtime that its build chose, if it chose one."""
        return self.by.chosen(directory, self)

    @property
    def by(self) -> Runtime:
        """The runtime."""
        return registry.find(self.runtime)

    @property
    def needs(self) -> Hardware | None:
        """The hardware that runs the model, with the libraries that its tool loads; None where `hardware` is None."""
        update = {"libraries": self.by.libraries(self)}
        return None if self.hardware is None else self.hardware.model_copy(update=update)

    @property
    def tools(self) -> tuple[str, ...]:
        """The names of the distributions that the model's outputs depend on."""
        return self.by.tools(self)

    @property
    def facts(self) -> tuple[str, ...]:
        """The names of the facts of the machine that choose kernels, and so affect the model's outputs."""
        return self.by.facts(self)

    @property
    def code(self) -> tuple[str, ...]:
        """The modules that run the model; their code is part of the key of each job that runs the model."""
        return tuple(dict.fromkeys((*self.by.code(), *(code for each in self._runs for code in each.by.code()))))

    @property
    def code_to_serve(self) -> tuple[str, ...]:
        """The modules that tell how the model is served; their code is part of the keys of the step `package`."""
        served = (code for each in self._runs for code in each.by.code_to_serve())
        return tuple(dict.fromkeys((*self.by.code_to_serve(), *served)))

    @property
    def package_tools(self) -> tuple[str, ...]:
        """The names of the distributions that the runtime's part of a package depends on."""
        return tuple(dict.fromkeys(tool for each in self._runs for tool in each.by.package_tools()))

    @property
    def _runs(self) -> tuple[Self, ...]:
        return self.by.executions(self)
