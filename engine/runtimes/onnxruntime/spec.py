"""ONNX Runtime: what it runs, on a CPU or through a provider for GPUs, and what that depends on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar

from engine import gpus
from engine.runtimes.backends import Accelerator, Backend
from engine.runtimes.preparation import Lowering, Residual
from engine.runtimes.runtime import GPU_FACTS, E, Kernels, Runtime, Unsupported, Way

if TYPE_CHECKING:
    from engine.gpus import Gpu
    from engine.runtimes.recipes import ExecutionView, LoadedRecipeView, RecipeView, TargetView
    from engine.runtimes.triton_images import ImageTag


class Provider(StrEnum):
    """What runs a session: `target.provider`."""

    CPU = "cpu"
    CUDA = "cuda"
    TENSORRT = "tensorrt"


_GPU = "onnxruntime-gpu"
_CPU_FACTS = ("cpu.isa", "onnxruntime.build")
_BY_BUILD = (
    *("memory_pool", "optimization_level", "compatibility", "version_compatible", "exclude_lean_runtime"),
    *("tiling_optimization_level", "profiling_verbosity", "max_aux_streams", "avg_timing_iterations", "timing_cache"),
    *("plugins", "refit", "strip_plan", "weight_streaming", "sparse_weights"),
)
"""What only the builder of an engine reads: the TensorRT provider has settings of its own."""


def provider_of(target: TargetView) -> Provider:
    """Return the provider that a target means; without a word of it the CPU's or CUDA's, by the device."""
    if target.provider is not None:
        return Provider(target.provider)
    return Provider.CPU if target.device == "cpu" else Provider.CUDA


def _tensorrt() -> ModuleType:
    """Return what refuses recipes for TensorRT, which the provider hands graphs to; it counts in no key."""
    return import_module("engine.runtimes.tensorrt.feasible")


class OnnxRuntime(Runtime):
    """ONNX Runtime."""

    name: ClassVar[str] = "onnxruntime"
    title: ClassVar[str] = "ONNX Runtime"
    work: ClassVar[str] = ".runner"
    serving: ClassVar[str] = ".triton"
    providers: ClassVar[tuple[str, ...]] = tuple(Provider)
    on_gpus: ClassVar[bool] = True
    rival_of: ClassVar[str | None] = "exported"
    rival_precisions: ClassVar[tuple[str, ...]] = ("fp32",)
    rival_served: ClassVar[bool] = True
    backend: ClassVar[Backend | None] = Backend.ONNXRUNTIME
    loads_in_triton: ClassVar[bool] = True
    threads_in_triton: ClassVar[str | None] = "intra_op_thread_count"
    """Source: README of triton-inference-server/onnxruntime_backend."""
    ways: ClassVar[tuple[Way, ...]] = (
        Way("onnxruntime, provider: cuda", (_GPU,)),
        Way("onnxruntime, provider: tensorrt", (_GPU,), libraries=("libnvinfer.so.10",)),
    )
    tools_for: ClassVar[Mapping[str, str]] = {"onnxruntime": "all models", _GPU: "ONNX models on a GPU"}

    def runs_on_cpu(self, target: TargetView) -> bool:
        """Say whether the CPU provider runs the model, on whatever machine."""
        return target.device == "cpu" or target.provider == Provider.CPU

    def refuse_cpu(self, loaded: LoadedRecipeView) -> None:
        """Raise RecipeError for a provider that runs on GPUs alone."""
        provider = loaded.recipe.target.provider
        if provider not in (None, Provider.CPU):
            what = f"the provider {provider} runs on NVIDIA GPUs; the target is a cpu"
            hint = "name the GPU (`recipe gpus` lists them), or use provider: cpu"
            raise loaded.error(what, "target", "provider", hint=hint)

    def refuse_gpus(self, loaded: LoadedRecipeView, named: Sequence[Gpu]) -> None:
        """Raise RecipeError where no provider for GPUs is named."""
        provider = loaded.recipe.target.provider
        if provider in (None, Provider.CPU):
            what = f"{self.name} runs on {gpus.called(named)} through a provider for GPUs"
            facts = [f"provider: {provider}" if provider else "the default is provider: cpu"]
            at = "provider" if provider else "device"
            hint = "say provider: cuda (or tensorrt), or device: cpu"
            raise loaded.error(what, "target", at, facts=facts, hint=hint)

    def kernels(self, target: TargetView) -> Kernels | None:
        """Return what the kernels of a CPU or of the CUDA provider are for; TensorRT's compute in what the GPU does."""
        match provider_of(target):
            case Provider.CPU:
                return Kernels(("fp32", "int8"), f"{self.name} computes there in")
            case Provider.CUDA:
                fact = "its kernels for fused transformers are for"
                return Kernels(("fp32", "fp16"), fact, instead="provider: tensorrt")
            case Provider.TENSORRT:
                return None

    def sections(self, target: TargetView) -> Sequence[str]:
        """Return the section of TensorRT's options, where its provider builds the engines."""
        return ("tensorrt",) if target.provider == Provider.TENSORRT else ()

    def refuse_options(self, loaded: LoadedRecipeView, devices: Sequence[Gpu]) -> None:
        """Raise RecipeError for TensorRT's options that only the builder of an engine reads."""
        tensorrt = loaded.recipe.tensorrt
        for name in _BY_BUILD:
            if name in tensorrt:
                what = f"`tensorrt.{name}` is for engines that are built here; onnxruntime's provider builds its own"
                raise loaded.error(what, "tensorrt", name, hint="leave it out, or use runtime: tensorrt")
        if tensorrt:
            _tensorrt().options(loaded, devices)

    def refuse_image(self, loaded: LoadedRecipeView, named: ImageTag) -> None:
        """Every image with Triton's ONNX Runtime backend loads ONNX models."""

    def refuse_operators(self, loaded: LoadedRecipeView, operators: Mapping[str, Sequence[str]]) -> None:
        """Raise RecipeError for operators that TensorRT does not have, where its provider takes the graph."""
        if loaded.recipe.target.provider == Provider.TENSORRT:
            _tensorrt().operators(loaded, operators)

    def unsupported(self, recipe: RecipeView) -> Iterator[Unsupported]:
        """Yield what the TensorRT provider cannot do."""
        if recipe.precision == "fp8" and recipe.target.provider == Provider.TENSORRT:
            what = "fp8 behind ONNX Runtime, whose optimizer takes such a graph apart"
            yield Unsupported("precision", what, "runtime: tensorrt, or precision: fp16")
        if recipe.tensorrt.get("cuda_graph"):
            what = "CUDA graphs through onnxruntime: Triton moves the buffers that one would be captured with"
            yield Unsupported("tensorrt.cuda_graph", what, "runtime: tensorrt")

    def accelerator(self, target: TargetView) -> Accelerator | None:
        """Return TensorRT where its provider runs the model."""
        return Accelerator.TENSORRT if target.provider == Provider.TENSORRT else None

    def generates(self, target: TargetView) -> bool:
        """Say whether it runs models that generate text there: on a CPU."""
        return self.runs_on_cpu(target)

    def fixes_profiles(self, target: TargetView) -> bool:
        """Say whether the TensorRT provider builds engines of the profiles."""
        return target.provider == Provider.TENSORRT

    def lowering(self, recipe: RecipeView) -> Lowering | None:
        """Return how the precision comes into the graph: on a CPU only int8 does, as dynamic int8."""
        if self.runs_on_cpu(recipe.target):
            return Lowering.DYNAMIC if recipe.precision == "int8" else None
        return Lowering.IN_THE_GRAPH if recipe.precision != "fp32" else None

    def fuses(self, target: TargetView) -> Residual | None:
        """Return how operators are fused. TensorRT knows no fused operators, as a provider too.

        On a CPU the fused kernel of a residual addition (SkipLayerNormalization) is the slower one in ONNX Runtime 1.30
        and 1.31, clearly so for int8; it was not in 1.24: look again when onnxruntime is upgraded. On a GPU it saves a
        launch and a round trip through memory.
        """
        match provider_of(target):
            case Provider.CPU:
                return Residual.APART
            case Provider.CUDA:
                return Residual.FUSED
            case Provider.TENSORRT:
                return None

    def execution(self, recipe: RecipeView) -> Mapping[str, Any]:
        """Return the provider, and of the TensorRT provider what it builds its engine for."""
        provider, tensorrt = provider_of(recipe.target), recipe.tensorrt
        options: dict[str, object] = {"provider": provider.value}
        if provider is Provider.TENSORRT:
            options |= {
                "cuda_graph": bool(tensorrt.get("cuda_graph", False)),
                "profiles": [
                    {axis: extent.model_dump(mode="json") for axis, extent in profile.items()}
                    for profile in recipe.profiles
                ],
                "workspace": tensorrt.get("memory_pool", {}).get("workspace"),
                "optimization_level": tensorrt.get("optimization_level"),
            }
        return options

    def tool(self, target: TargetView) -> str | None:
        """Return the build of ONNX Runtime for GPUs."""
        return None if self.runs_on_cpu(target) else _GPU

    def tools(self, execution: ExecutionView) -> tuple[str, ...]:
        """Return the distributions that run it."""
        return ("numpy", self.name if execution.hardware is None else execution.hardware.tool)

    def facts(self, execution: ExecutionView) -> tuple[str, ...]:
        """Return what chooses the kernels: the CPU's instructions and the build that runs on it, or GPU and driver."""
        if execution.hardware is None:
            return _CPU_FACTS
        # A fact and no tool: a machine without the GPU, which looks for what was made on one, need not have it.
        by_tensorrt = execution.options.get("provider") == Provider.TENSORRT
        return (*GPU_FACTS, "tensorrt.version") if by_tensorrt else GPU_FACTS

    def latency_facts(self, execution: ExecutionView) -> tuple[str, ...]:
        """Return which build of ONNX Runtime it is."""
        return ("onnxruntime.build",)

    def as_rival(self, execution: E) -> E:
        """Return the provider that a user would take: the CPU's, or CUDA's."""
        provider = Provider.CUDA if execution.on_gpu else Provider.CPU
        return execution.model_copy(update={"runtime": self.name, "options": {"provider": provider.value}})

    def rival_tools(self, *, library: str) -> tuple[str, ...]:
        """Return what runs the exported model."""
        return ("numpy", self.name)
