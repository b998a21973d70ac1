"""Auto: a name in recipes for the fastest of several runtimes, which a build measures on the target."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

from engine.runtimes import registry
from engine.runtimes.runtime import E, Runtime

if TYPE_CHECKING:
    from pathlib import Path

    from engine.runtimes.recipes import ExecutionView, RecipeView, TargetView

_ON_CPUS = ("onnxruntime", "openvino")
_ON_GPUS = ("onnxruntime", "inductor", "tensorrt")
"""The runtimes that are measured for a CPU, and those for a GPU; the first is the default."""
_CHOICE = "engine.runtimes.choice"


class Auto(Runtime):
    """The runtime `auto`: the fastest that validates, on a CPU or on one kind of GPU.

    The step `choose-runtime` writes the model of the chosen runtime, and beside it the runtime's name. Everything that
    runs, measures or packages the model reads that name first, with `chosen`.
    """

    name: ClassVar[str] = "auto"
    title: ClassVar[str] = "the fastest runtime"
    on_gpus: ClassVar[bool] = True
    lowers_fp32: ClassVar[bool] = True
    loads_in_triton: ClassVar[bool] = True
    compile_step: ClassVar[str | None] = "choose-runtime"

    def candidates(self, recipe: RecipeView) -> tuple[str, ...]:
        """Return the runtimes that are measured; ONNX Runtime, the default, is the first on every target."""
        names = _ON_CPUS if recipe.target.device == "cpu" else _ON_GPUS
        return tuple(name for name in names if registry.find(name).takes_part(recipe))

    def executions(self, execution: E) -> tuple[E, ...]:
        """Return how each candidate runs its model."""
        return tuple(map(execution.as_run_by, execution.options))

    def chosen(self, directory: Path, execution: E) -> E:
        """Return how the runtime that the file in `directory` names runs the model."""
        return execution.as_run_by(import_module(_CHOICE).read(directory))

    def sections(self, target: TargetView) -> Sequence[str]:
        """Return `tensorrt` for a GPU, where the section makes TensorRT a candidate."""
        return () if target.device == "cpu" else ("tensorrt",)

    def weights_only(self, recipe: RecipeView) -> bool:
        """Say whether the recipe's precision is that of the weights alone for every candidate."""
        names = self.candidates(recipe)
        return all(registry.find(name).weights_only(recipe.as_run_by(name)) for name in names)

    def not_verified(self, recipe: RecipeView) -> str | None:
        """Return what nobody knows about the recipe's Triton image for one of the candidates."""
        views = ((registry.find(name), recipe.as_run_by(name)) for name in self.candidates(recipe))
        return next(filter(None, (runtime.not_verified(view) for runtime, view in views)), None)

    def padded_profiles(self, recipe: RecipeView) -> Sequence[Mapping[str, Any]]:
        """Return the profiles where a candidate takes only their shapes."""
        fixed = any(registry.find(name).fixes_profiles(recipe.target) for name in self.candidates(recipe))
        return recipe.profiles if fixed else ()

    def execution(self, recipe: RecipeView) -> Mapping[str, Any]:
        """Return the options of every candidate by the candidate's name."""
        names = self.candidates(recipe)
        return {name: dict(registry.find(name).execution(recipe.as_run_by(name))) for name in names}

    def tools(self, execution: ExecutionView) -> tuple[str, ...]:
        """Return the names of the distributions that run the models of all candidates."""
        return _union(each.by.tools(each) for each in self.executions(execution))

    def facts(self, execution: ExecutionView) -> tuple[str, ...]:
        """Return the names of the facts of the machine that the outputs of the candidates depend on."""
        return _union(each.by.facts(each) for each in self.executions(execution))

    def latency_facts(self, execution: ExecutionView) -> tuple[str, ...]:
        """Return the names of further facts on which the latencies of the candidates depend."""
        return _union(each.by.latency_facts(each) for each in self.executions(execution))

    def graphed(self, execution: E) -> E | None:
        """Return how a candidate with CUDA graphs is run with them; None where none has them."""
        return next(filter(None, (each.by.graphed(each) for each in self.executions(execution))), None)

    def code(self) -> tuple[str, ...]:
        """Return the modules that read the choice; the modules of the candidates are those of their executions."""
        return (*super().code(), _CHOICE)

    def code_to_serve(self) -> tuple[str, ...]:
        """Return the modules that read the choice, as `code` does."""
        return (*super().code_to_serve(), _CHOICE)


def _union(groups: Iterable[Iterable[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each for group in groups for each in group))
