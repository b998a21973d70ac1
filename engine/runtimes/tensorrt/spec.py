"""TensorRT: engines that are built on the GPU that they are for, and served by Triton's own backend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar

from engine import distribution
from engine.runtimes import triton_images
from engine.runtimes.backends import Backend
from engine.runtimes.preparation import Lowering
from engine.runtimes.runtime import GPU_FACTS, Runtime, Way

if TYPE_CHECKING:
    from engine.gpus import Gpu
    from engine.runtimes.recipes import ExecutionView, LoadedRecipeView, RecipeView, TargetView
    from engine.runtimes.triton_images import ImageTag

CUDA_BINDINGS = ("cuda-bindings", "cuda.bindings")


def _feasible() -> ModuleType:
    """Return what refuses recipes: it counts in no key, so it is imported by its name."""
    return import_module(f"{__package__}.feasible")


class Engines(Runtime):
    """What TensorRT and TensorRT-RTX have in common: an engine is built of a graph that says every precision."""

    work: ClassVar[str] = ".runner"
    serving: ClassVar[str] = ".triton"
    on_cpus: ClassVar[bool] = False
    on_gpus: ClassVar[bool] = True
    compile_step: ClassVar[str | None] = "trt-build"
    backend: ClassVar[Backend | None] = Backend.TENSORRT

    module: ClassVar[str]
    """The Python module that builds and runs engines; also the distribution that is looked for."""
    package: ClassVar[str]
    """What pip installs."""
    install: ClassVar[str]
    """How it is installed, as a hint."""
    majors: ClassVar[tuple[str, ...]]
    """The major versions that are supported."""
    anywhere: ClassVar[bool] = False
    """Whether engines are built without the GPU that they are for."""

    def runs_on_cpu(self, target: TargetView) -> bool:
        """Engines never run on a CPU; a target that is one is refused."""
        return target.device == "cpu"

    def kernels(self, target: TargetView) -> None:
        """Precisions are the GPU's."""

    def sections(self, target: TargetView) -> Sequence[str]:
        """Return the section with the builder's options."""
        return ("tensorrt",)

    def refuse_options(self, loaded: LoadedRecipeView, devices: Sequence[Gpu]) -> None:
        """Raise RecipeError for options that the builder does not have, or not for these GPUs."""
        _feasible().options(loaded, devices)

    def refuse_operators(self, loaded: LoadedRecipeView, operators: Mapping[str, Sequence[str]]) -> None:
        """Raise RecipeError for operators that TensorRT does not have."""
        _feasible().operators(loaded, operators)

    def fixes_profiles(self, target: TargetView) -> bool:
        """An engine takes what its profiles allow."""
        return True

    def lowering(self, recipe: RecipeView) -> Lowering | None:
        """Return how the precision comes into the graph: TensorRT 11 and RTX take it from there alone."""
        return Lowering.IN_THE_GRAPH if recipe.precision != "fp32" else None

    def execution(self, recipe: RecipeView) -> Mapping[str, Any]:
        """Return whether calls are captured into CUDA graphs."""
        return {"cuda_graph": bool(recipe.tensorrt.get("cuda_graph", False))}

    def tool(self, target: TargetView) -> str | None:
        """Return the package of the builder."""
        return self.module

    def tools(self, execution: ExecutionView) -> tuple[str, ...]:
        """Return the distributions that run an engine."""
        return ("numpy", self.module)

    def facts(self, execution: ExecutionView) -> tuple[str, ...]:
        """Return what an engine's answers depend on of the machine."""
        return GPU_FACTS


class TensorRT(Engines):
    """NVIDIA TensorRT."""

    name: ClassVar[str] = "tensorrt"
    title: ClassVar[str] = "TensorRT"
    loads_in_triton: ClassVar[bool] = True
    module: ClassVar[str] = "tensorrt"
    package: ClassVar[str] = "tensorrt"
    install: ClassVar[str] = (
        f"on the machine with the GPU: {distribution.install('tensorrt')}, or NVIDIA's TensorRT container"
    )
    majors: ClassVar[tuple[str, ...]] = ("10", "11")
    ways: ClassVar[tuple[Way, ...]] = (Way("tensorrt", ("tensorrt",), (CUDA_BINDINGS,)),)
    tools_for: ClassVar[Mapping[str, str]] = {
        "tensorrt": "TensorRT engines, on the GPU that they are for",
        "cuda-bindings": "running TensorRT engines",
    }

    def refuse_image(self, loaded: LoadedRecipeView, named: ImageTag) -> None:
        """Raise RecipeError where the image's TensorRT does not load what the recipe's builds."""
        self.beside("images").refuse(loaded, named)

    def tool_version(self, recipe: RecipeView) -> str | None:
        """Return the recipe's version of TensorRT: its own word, or that of its Triton image."""
        return triton_images.tensorrt_for(recipe)
