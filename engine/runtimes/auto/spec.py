"""Auto: a name in recipes for the fastest of several runtimes, which a build measures on the target."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

from engine.runtimes import registry
from engine.runtimes.runtime import E, Runtime
from engine.runtimes.support import Unsupported

if TYPE_CHECKING:
    from pathlib import Path

    from engine.gpus import Gpu
    from engine.runtimes.recipes import ExecutionView, LoadedRecipeView, RecipeView, TargetView

_ON_CPUS = ("onnxruntime", "openvino")
"""The runtimes that are measured for a CPU; the first is the default."""
_CHOICE = "engine.runtimes.auto.choice"


class Auto(Runtime):
    """The runtime `auto`: for a CPU the fastest that validates; for a GPU, builds are refused as not supported yet.

    The step `choose-runtime` writes the model of the chosen runtime, and beside it the runtime's name. Everything that
    runs, measures or packages the model reads that name first, with `chosen`.
    """

    name: ClassVar[str] = "auto"
    title: ClassVar[str] = "the fastest runtime"
    on_gpus: ClassVar[bool] = True
    lowers_fp32: ClassVar[bool] = True
    loads_in_triton: ClassVar[bool] = True
    compile_step: ClassVar[str | None] = "choose-runtime"

    def candidates(self, target: TargetView) -> tuple[str, ...]:
        """Return the runtimes that are measured: on a CPU ONNX Runtime, the default, and OpenVINO."""
        return _ON_CPUS if target.device == "cpu" else ()

    def chosen(self, directory: Path, execution: E) -> E:
        """Return how the runtime that the file in `directory` names runs the model."""
        return execution.as_run_by(import_module(_CHOICE).read(directory))

    def builds_for(self, gpu: Gpu) -> bool:
        """Return True, because for every GPU of the catalogue some runtime builds models."""
        return True

    def sections(self, target: TargetView) -> Sequence[str]:
        """Return the names of the sections that any runtime reads, as `auto` may stand for any runtime on a GPU."""
        return ("tensorrt",)

    def refuse_options(self, loaded: LoadedRecipeView, devices: Sequence[Gpu]) -> None:
        """Raise RecipeError at an option under `tensorrt` that TensorRT does not have."""
        import_module("engine.runtimes.tensorrt.feasible").options(loaded, devices)

    def unsupported(self, recipe: RecipeView) -> Iterator[Unsupported]:
        """Yield the runtime itself for a GPU, for which no build measures runtimes yet."""
        if not self.candidates(recipe.target):
            yield Unsupported("target.runtime", "choosing a runtime for a GPU", "onnxruntime or tensorrt")

    def execution(self, recipe: RecipeView) -> Mapping[str, Any]:
        """Return the options of every candidate by the candidate's name."""
        return {name: dict(registry.find(name).execution(recipe)) for name in self.candidates(recipe.target)}

    def tools(self, execution: ExecutionView) -> tuple[str, ...]:
        """Return the names of the distributions that run the models of all candidates."""
        return _union(registry.find(each.runtime).tools(each) for each in _each(execution))

    def package_tools(self) -> tuple[str, ...]:
        """Return the names of the distributions that the packages of the candidates depend on."""
        return _union(registry.find(name).package_tools() for name in _ON_CPUS)

    def facts(self, execution: ExecutionView) -> tuple[str, ...]:
        """Return the names of the facts of the machine that the outputs of the candidates depend on."""
        return _union(registry.find(each.runtime).facts(each) for each in _each(execution))

    def latency_facts(self, execution: ExecutionView) -> tuple[str, ...]:
        """Return the names of further facts on which the latencies of the candidates depend."""
        return _union(registry.find(each.runtime).latency_facts(each) for each in _each(execution))

    def code(self) -> tuple[str, ...]:
        """Return the modules that read the choice, and those that run the models of the candidates."""
        return _union([super().code(), (_CHOICE,), *(registry.find(name).code() for name in _ON_CPUS)])

    def code_to_serve(self) -> tuple[str, ...]:
        """Return the modules that read the choice, and those that tell how the candidates' models are served."""
        served = (registry.find(name).code_to_serve() for name in _ON_CPUS)
        return _union([super().code_to_serve(), (_CHOICE,), *served])


def _each(execution: E) -> Iterator[E]:
    """Yield how each candidate runs its model."""
    yield from map(execution.as_run_by, execution.options)


def _union(groups: Iterable[Iterable[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each for group in groups for each in group))
