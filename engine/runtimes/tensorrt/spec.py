"""TensorRT as a runtime: engines are built on the GPU that they run on, and served by Triton's TensorRT backend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from engine.runtimes import triton_images
from engine.runtimes.backends import Backend
from engine.runtimes.knobs import Knob, first, max_batch_size, tf32
from engine.runtimes.preparation import Lowering
from engine.runtimes.runtime import GPU_FACTS, Runtime
from engine.runtimes.support import Way
from engine.runtimes.tensorrt_values import TENSORRT, Product
from engine.text import versions

if TYPE_CHECKING:
    from engine.gpus import Gpu
    from engine.runtimes.recipes import ExecutionView, LoadedRecipeView, RecipeView, TargetView
    from engine.runtimes.triton_images import ImageTag

CUDA_BINDINGS = ("cuda-bindings", "cuda.bindings")
"""The names of the distribution and the module with which TensorRT engines are run."""

_WITH_OPSET_22 = "10.6"
"""The first TensorRT version whose parser has the operators of opset 22.

Source: onnx-tensorrt, docs/Changelog.md: release 10.6 brought ONNX 1.17, which has opset 22.
"""
_NEWEST_OPSET = 22
_TRIED: Mapping[str, tuple[object, ...]] = {
    "cuda_graph": (None, True),
    "optimization_level": (None, 4, 5),
    "tiling_optimization_level": (None, "moderate", "full"),
    "max_aux_streams": (None, 0),
}
"""The options under `tensorrt` that are worth a trial, with their values; None is TensorRT's default, level 3 of 5."""
_STRIPPED = (
    "`validate` cannot run an engine without its weights (strip_plan): build with --to trt-build, and refit it yourself"
)


class Engines(Runtime):
    """Base of TensorRT and TensorRT-RTX: an engine is built from a graph whose tensors all have explicit types."""

    work: ClassVar[str] = ".runner"
    compares_layers: ClassVar[bool] = True
    serving: ClassVar[str] = ".triton"
    on_cpus: ClassVar[bool] = False
    on_gpus: ClassVar[bool] = True
    compile_step: ClassVar[str | None] = "trt-build"
    backend: ClassVar[Backend | None] = Backend.TENSORRT

    product: ClassVar[Product]
    majors: ClassVar[tuple[str, ...]]
    """The major versions of TensorRT or TensorRT-RTX that this project supports."""

    def takes_part(self, recipe: RecipeView) -> bool:
        """Return whether the recipe has the section `tensorrt`.

        The recipe alone decides it, as what is installed must not change what a recipe means.
        """
        return bool(recipe.tensorrt)

    def knobs(self, recipe: RecipeView) -> tuple[Knob, ...]:
        """Return the precisions, TF32, options that may give a faster engine or call, and `max_batch_size`.

        Empty for a recipe that names another runtime, unless it has the section `tensorrt` with a version of this one.
        """
        version = recipe.tensorrt.get("version")
        fits = version is None or versions.parts(version)[0] in self.majors
        if recipe.target.runtime != self.name and not (self.takes_part(recipe) and fits):
            return ()
        product = triton_images.tensorrt_for(recipe) if self.loads_in_triton else None
        options = tuple(
            Knob(f"tensorrt.{name}", first(recipe.tensorrt.get(name), values))
            for name, values in _TRIED.items()
            if product is None or not any(self.beside("version_checks").options_lacking({name: values[-1]}, product))
        )
        return (*super().knobs(recipe), *tf32(self, recipe), *options, *max_batch_size(recipe))

    def kernels(self, target: TargetView) -> None:
        """Return None, because the GPU alone decides the precisions of an engine."""

    def tf32_choices(self, target: TargetView) -> Sequence[bool]:
        """Return both values: the builder's flag TF32 is set by default, and can be cleared."""
        return (False, True)

    def sections(self, target: TargetView) -> Sequence[str]:
        """Return `tensorrt`, the section with the options of the builder."""
        return ("tensorrt",)

    def refuse_options(self, loaded: LoadedRecipeView, devices: Sequence[Gpu]) -> None:
        """Raise RecipeError for options that TensorRT's builder lacks, or that the GPUs in `devices` do not allow."""
        self.beside("feasible").options(loaded, devices)

    def refuse_operators(self, loaded: LoadedRecipeView, operators: Mapping[str, Sequence[str]]) -> None:
        """Raise RecipeError for operators that TensorRT does not have."""
        self.beside("feasible").operators(loaded, operators)

    def refuse_quantized(self, loaded: LoadedRecipeView, types: Sequence[str], devices: Sequence[Gpu]) -> None:
        """Raise RecipeError for a quantized model that TensorRT does not read, or computes in another precision."""
        self.beside("feasible").quantized(loaded, types, devices, self)

    def fixes_profiles(self, target: TargetView) -> bool:
        """Return True, because an engine takes only the shapes of its profiles."""
        return True

    def lowering(self, recipe: RecipeView) -> Lowering | None:
        """Return how the graph gets the precision; TensorRT 11 and TensorRT-RTX read precisions only from the graph."""
        return Lowering.IN_THE_GRAPH if recipe.precision != "fp32" else None

    def newest_opset(self, recipe: RecipeView) -> int:
        """Return opset 22; an older one for a TensorRT version whose parser does not have it."""
        version = triton_images.tensorrt_for(recipe) if self.loads_in_triton else None
        if version is not None and versions.is_later(_WITH_OPSET_22, than=version):
            return super().newest_opset(recipe)
        return _NEWEST_OPSET

    def execution(self, recipe: RecipeView) -> Mapping[str, Any]:
        """Return the options `cuda_graph` and, where the recipe says it, `tf32`.

        With `cuda_graph`, each prepared call is captured into a CUDA graph. The engine itself holds `tf32`, which the
        rivals get from here.
        """
        allowed = self.tf32_of(recipe)
        stated = {} if allowed is None else {"tf32": allowed}
        return {"cuda_graph": bool(recipe.tensorrt.get("cuda_graph", False)), **stated}

    def tool(self, target: TargetView) -> str | None:
        """Return the name of the module that builds and runs engines."""
        return self.product.module

    def tools(self, execution: ExecutionView) -> tuple[str, ...]:
        """Return the names of the distributions that run engines: `numpy`, and `tensorrt` or `tensorrt_rtx`."""
        return ("numpy", self.product.module)

    def facts(self, execution: ExecutionView) -> tuple[str, ...]:
        """Return the names of the facts on which an engine's outputs depend: GPU, driver and CUDA runtime."""
        return GPU_FACTS


class TensorRT(Engines):
    """The runtime `tensorrt`: NVIDIA TensorRT."""

    product: ClassVar[Product] = TENSORRT
    name: ClassVar[str] = TENSORRT.name
    title: ClassVar[str] = TENSORRT.title
    loads_in_triton: ClassVar[bool] = True
    majors: ClassVar[tuple[str, ...]] = ("10", "11")
    ways: ClassVar[tuple[Way, ...]] = (Way("tensorrt", ("tensorrt",), (CUDA_BINDINGS,)),)
    tools_for: ClassVar[Mapping[str, str]] = {
        "tensorrt": "TensorRT engines, on the GPU that they are for",
        "cuda-bindings": "running TensorRT engines",
    }

    def refuse_image(self, loaded: LoadedRecipeView, named: ImageTag) -> None:
        """Raise RecipeError where the image's TensorRT does not load the engines that the recipe's TensorRT builds."""
        self.beside("version_checks").refuse_image(loaded, named)

    def not_verified(self, recipe: RecipeView) -> str | None:
        """Return why nobody knows whether the recipe's image loads the engine; None where that is known.

        An engine without its weights answers only after a refit (NVIDIA, "Refitting an Engine"), which no step does.
        """
        stripped = _STRIPPED if recipe.tensorrt.get("strip_plan") else None
        return triton_images.not_verified(recipe) or stripped

    def tool_version(self, recipe: RecipeView) -> str | None:
        """Return the version of TensorRT that the recipe requests: `tensorrt.version`, or that of its Triton image."""
        return triton_images.tensorrt_for(recipe)
