"""ONNX Runtime as a runtime: what it runs on a CPU or through a provider on GPUs, and what its results depend on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar

from engine import gpus
from engine.runtimes import triton_images
from engine.runtimes.backends import Accelerator, Backend
from engine.runtimes.knobs import Knob, max_batch_size, tf32, weights_only
from engine.runtimes.onnxruntime.providers import TENSORRT_LIBRARIES
from engine.runtimes.preparation import Lowering, Residual
from engine.runtimes.runtime import GPU_FACTS, E, Runtime
from engine.runtimes.support import Kernels, Unsupported, Way
from engine.text import versions

if TYPE_CHECKING:
    from engine.gpus import Gpu
    from engine.gpus.libraries import Libraries
    from engine.runtimes.recipes import ExecutionView, LoadedRecipeView, RecipeView, TargetView
    from engine.runtimes.triton_images import ImageTag

GPU_DISTRIBUTION = "onnxruntime-gpu"
"""The distribution with ONNX Runtime for GPUs."""
_WITH_ATTENTION = "25.08"
"""The oldest release of Triton whose ONNX Runtime (1.23.0) has the operators of opset 23, among them Attention.

Source: `ort_version` in build.py of triton-inference-server/server, branches r24.10 (1.19.2) to r25.08 (1.23.0).
"""
_NEWEST_OPSET = 23
IMAGE_WITH_TF32 = "24.05"
"""The oldest Triton image whose ONNX Runtime (1.18) has the option `use_tf32` of the CUDA provider.

Source: TRITON_VERSION_MAP in build.py of triton-inference-server/server: branch r24.04 has ONNX Runtime 1.17.3, r24.05
has 1.18.0.
"""
_STRICT = (
    "LayerNormalization",
    "SimplifiedLayerNormalization",
    "SkipLayerNormalization",
    "SkipSimplifiedLayerNormalization",
)
"""Operators whose kernels for fp16 sum in fp32; those with a residual addition by an option before ONNX Runtime 1.27.

The option is `enable_skip_layer_norm_strict_mode`. Triton hands options to the CUDA provider from 24.05 on.
"""
_IMAGE_WITH_WIDE_SUMS = "26.07"
"""The oldest Triton image whose ONNX Runtime (1.27 or newer) sums in fp32 in these and in EmbedLayerNormalization.

Source: pull request 28682 of microsoft/onnxruntime, whose kernels get epsilon as a float. The library of the CUDA
provider in the wheel of onnxruntime-gpu 1.27.0 has such kernels, that of 1.26.0 has none. Issue 8848 and pull request
8867 of triton-inference-server/server: the image 26.05 has ONNX Runtime 1.24.4, and build.py names 1.27.0 since June
30, 2026.
"""
_TOKENS, _LONG = "sequence", 384
"""The axis of tokens, and the number of tokens from which on an attention bias is faster in fp32."""
_CPU_FACTS = ("cpu.isa", "onnxruntime.build")


class Provider(StrEnum):
    """The values of `target.provider`, each for an execution provider of ONNX Runtime."""

    CPU = "cpu"
    CUDA = "cuda"
    TENSORRT = "tensorrt"


def provider_of(target: TargetView) -> Provider:
    """Return the execution provider that a recipe's target names, or the default provider of the target.

    A target that names no provider gets the CPU provider for a CPU, and the CUDA provider for a GPU.
    """
    if target.provider is not None:
        return Provider(target.provider)
    return Provider.CPU if target.device == "cpu" else Provider.CUDA


def _is_served_from(release: str, recipe: RecipeView) -> bool:
    """Say whether a recipe names a Triton image of a release or a later one, or no image."""
    tag = triton_images.tag_of(recipe)
    return tag is None or (bool(tag.release) and not versions.is_later(release, than=tag.release))


class OnnxRuntime(Runtime):
    """The runtime `onnxruntime`."""

    name: ClassVar[str] = "onnxruntime"
    title: ClassVar[str] = "ONNX Runtime"
    work: ClassVar[str] = ".runner"
    compares_layers: ClassVar[bool] = True
    serving: ClassVar[str] = ".triton"
    providers: ClassVar[tuple[str, ...]] = tuple(Provider)
    on_gpus: ClassVar[bool] = True
    rival_of: ClassVar[str | None] = "exported"
    rival_precisions: ClassVar[tuple[str, ...]] = ("fp32",)
    rival_served: ClassVar[bool] = True
    backend: ClassVar[Backend | None] = Backend.ONNXRUNTIME
    loads_in_triton: ClassVar[bool] = True
    threads_in_triton: ClassVar[str | None] = "intra_op_thread_count"
    runs_in_python: ClassVar[bool] = True
    """Source: README of triton-inference-server/onnxruntime_backend."""
    ways: ClassVar[tuple[Way, ...]] = (
        Way("onnxruntime, provider: cuda", (GPU_DISTRIBUTION,)),
        Way("onnxruntime, provider: tensorrt", (GPU_DISTRIBUTION,), libraries=TENSORRT_LIBRARIES.names),
    )
    tools_for: ClassVar[Mapping[str, str]] = {"onnxruntime": "all models", GPU_DISTRIBUTION: "ONNX models on a GPU"}

    def default_provider(self, target: TargetView) -> str:
        """Return the CPU provider for a CPU, and the CUDA provider for a GPU."""
        return provider_of(target).value

    def runs_on_cpu(self, target: TargetView) -> bool:
        """Say whether the CPU provider runs the model. A target with a GPU may name the CPU provider, too."""
        return target.device == "cpu" or target.provider == Provider.CPU

    def refuse_cpu(self, loaded: LoadedRecipeView) -> None:
        """Raise RecipeError for a provider that runs on GPUs alone."""
        provider = loaded.recipe.target.provider
        if provider not in (None, Provider.CPU):
            what = f"the provider {provider} runs on NVIDIA GPUs; the target is a cpu"
            hint = "name the GPU (`recipe gpus` lists them), or use provider: cpu"
            raise loaded.error(what, "target", "provider", hint=hint)

    def refuse_gpus(self, loaded: LoadedRecipeView, named: Sequence[Gpu]) -> None:
        """Raise RecipeError where the recipe names a GPU and no provider for GPUs."""
        provider = loaded.recipe.target.provider
        if provider in (None, Provider.CPU):
            what = f"{self.name} runs on {gpus.called(named)} through a provider for GPUs"
            facts = [f"provider: {provider}" if provider else "the default is provider: cpu"]
            at = "provider" if provider else "device"
            hint = "say provider: cuda (or tensorrt), or device: cpu"
            raise loaded.error(what, "target", at, facts=facts, hint=hint)

    def kernels(self, target: TargetView) -> Kernels | None:
        """Return the precisions of the CPU or CUDA provider; None for TensorRT, which has the precisions of the GPU."""
        match provider_of(target):
            case Provider.CPU:
                return Kernels(("fp32", "int8", "int4"), f"{self.name} computes there in")
            case Provider.CUDA:
                fact = "its kernels for fused transformers are for"
                return Kernels(("fp32", "fp16"), fact, "runtime: onnxruntime, provider: tensorrt", not_for=("fp8",))
            case Provider.TENSORRT:
                return None

    def tf32_choices(self, target: TargetView) -> Sequence[bool]:
        """Return both values for the CUDA provider. The TensorRT provider keeps TensorRT's default, which is TF32.

        Source: ONNX Runtime's documentation: "NVIDIA - CUDA" has `use_tf32`, "NVIDIA - TensorRT" has no such option.
        """
        return {Provider.CPU: (), Provider.CUDA: (False, True), Provider.TENSORRT: (True,)}[provider_of(target)]

    def sections(self, target: TargetView) -> Sequence[str]:
        """Return the section `tensorrt` for the TensorRT provider, which builds engines; no section otherwise."""
        return ("tensorrt",) if target.provider == Provider.TENSORRT else ()

    def refuse_options(self, loaded: LoadedRecipeView, devices: Sequence[Gpu]) -> None:
        """Raise RecipeError for an option under `tensorrt` that the provider ignores or TensorRT does not allow."""
        self.beside("feasible").options(loaded, devices)

    def refuse_image(self, loaded: LoadedRecipeView, named: ImageTag) -> None:
        """Raise RecipeError for an older image that lacks what the recipe's precision or `tf32` needs."""
        self.beside("feasible").image(loaded, named, self)

    def refuse_installed(self, loaded: LoadedRecipeView, installed: Callable[[str], str | None]) -> None:
        """Raise RecipeError where the installed ONNX Runtime lacks what the recipe's precision or `tf32` needs."""
        self.beside("feasible").installation(loaded, installed, self)

    def refuse_operators(self, loaded: LoadedRecipeView, operators: Mapping[str, Sequence[str]]) -> None:
        """Raise RecipeError for operators that TensorRT does not have, where the TensorRT provider runs the graph."""
        self.beside("feasible").operators(loaded, operators)

    def unsupported(self, recipe: RecipeView) -> Iterator[Unsupported]:
        """Yield fp8 with the TensorRT provider, and `tensorrt.cuda_graph`, which no step supports for ONNX Runtime."""
        if recipe.precision == "fp8" and recipe.target.provider == Provider.TENSORRT:
            what = "fp8 behind ONNX Runtime, whose optimizer takes such a graph apart"
            yield Unsupported("precision", what, "runtime: tensorrt, or precision: fp16")
        if recipe.tensorrt.get("cuda_graph"):
            what = "CUDA graphs through onnxruntime: Triton moves the buffers that one would be captured with"
            yield Unsupported("tensorrt.cuda_graph", what, "runtime: tensorrt")

    def runs_in_python_on(self, target: TargetView) -> bool:
        """Say whether the CPU or the CUDA provider runs the model: a Python model opens no TensorRT provider."""
        return provider_of(target) is not Provider.TENSORRT

    def accelerator(self, target: TargetView) -> Accelerator | None:
        """Return the TensorRT accelerator where the TensorRT provider runs the model."""
        return Accelerator.TENSORRT if target.provider == Provider.TENSORRT else None

    def generates(self, target: TargetView) -> bool:
        """Say whether ONNX Runtime generates text on this target, as it does only with the CPU provider."""
        return self.runs_on_cpu(target)

    def fixes_profiles(self, target: TargetView) -> bool:
        """Say whether the TensorRT provider runs the model: its engines take only the shapes of the profiles."""
        return target.provider == Provider.TENSORRT

    def lowering(self, recipe: RecipeView) -> Lowering | None:
        """Return how the graph gets the precision: on a CPU int8 is dynamic or weight-only, and int4 is weight-only."""
        if recipe.precision == "fp32":
            return None
        if not self.runs_on_cpu(recipe.target):
            return Lowering.IN_THE_GRAPH
        if recipe.precision == "int4" or recipe.quantize.get("weights_only"):
            return Lowering.WEIGHTS_ONLY
        return Lowering.DYNAMIC if recipe.precision == "int8" else None

    def precisions(self, target: TargetView) -> tuple[str, ...]:
        """Return the precisions of the provider; the TensorRT provider has those of the GPU without fp8."""
        without = "fp8" if provider_of(target) is Provider.TENSORRT else None
        return tuple(each for each in super().precisions(target) if each != without)

    def knobs(self, recipe: RecipeView) -> tuple[Knob, ...]:
        """Return the precisions; `weights_only` for int8 on a CPU; TF32 on a GPU that has it; `max_batch_size`."""
        on_cpu = (weights_only(recipe),) if self.runs_on_cpu(recipe.target) else ()
        return (*super().knobs(recipe), *on_cpu, *tf32(self, recipe), *max_batch_size(recipe))

    def newest_opset(self, recipe: RecipeView) -> int:
        """Return opset 23, which every supported ONNX Runtime reads; an older one for an older or unknown image."""
        return _NEWEST_OPSET if _is_served_from(_WITH_ATTENTION, recipe) else super().newest_opset(recipe)

    def fuses(self, target: TargetView) -> Residual | None:
        """Return how transformer operators are fused; None for the TensorRT provider, which knows no fused operators.

        On a CPU, SkipLayerNormalization (a residual addition fused into the normalization) is slower than a separate
        addition and normalization in ONNX Runtime 1.30 and 1.31, above all for int8. In ONNX Runtime 1.24
        SkipLayerNormalization was not slower than a separate addition and normalization, so measure again when
        onnxruntime is upgraded. On a GPU, SkipLayerNormalization saves a kernel launch and a round trip through memory.
        """
        return {Provider.CPU: Residual.APART, Provider.CUDA: Residual.FUSED}.get(provider_of(target))

    def biases_attention(self, recipe: RecipeView) -> bool:
        """Say whether fused attention adds a bias: with the CUDA provider, in fp16 or on long texts.

        With a raw mask, ONNX Runtime runs attention as products and a softmax. With a bias it runs one fused kernel,
        which in fp32 is faster for long texts only. Texts are long where a profile's `opt` or a shape of `bench` has
        384 tokens or more. Source: ADR 70, measured on an H100: in fp32 with 384 tokens 1.35 times faster for MiniLM
        and 1.12 times for BERT-base; with 16 and 128 tokens from 5 % slower to 3 % faster. ONNX Runtime before 1.27
        can read a bias at misaligned addresses (its pull request 28369), so older Triton images get the mask.
        """
        if provider_of(recipe.target) is not Provider.CUDA or not _is_served_from(_IMAGE_WITH_WIDE_SUMS, recipe):
            return False
        opts = [profile[_TOKENS].opt for profile in recipe.profiles if _TOKENS in profile]
        measured = [shape.axes.get(_TOKENS, 0) for shape in recipe.bench.shapes] if recipe.bench else []
        return recipe.precision == "fp16" or max([*opts, *measured], default=0) >= _LONG

    def sums_in_fp32(self, recipe: RecipeView) -> tuple[str, ...]:
        """Return the normalizations whose kernels of the CUDA provider sum in fp32; fewer for an older Triton image."""
        if provider_of(recipe.target) is not Provider.CUDA or not _is_served_from(IMAGE_WITH_TF32, recipe):
            return ()
        return (*_STRICT, "EmbedLayerNormalization") if _is_served_from(_IMAGE_WITH_WIDE_SUMS, recipe) else _STRICT

    def execution(self, recipe: RecipeView) -> Mapping[str, Any]:
        """Return the provider's name; for the TensorRT provider also the options and profiles of its engines."""
        provider, tensorrt = provider_of(recipe.target), recipe.tensorrt
        options: dict[str, object] = {"provider": provider.value}
        if (allowed := self.tf32_of(recipe)) is not None:  # what a recipe leaves out is no row of a key
            options["tf32"] = allowed
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
            if recipe.shape_values:
                options["shape_values"] = [
                    {name: values.model_dump(mode="json") for name, values in profile.items()}
                    for profile in recipe.shape_values
                ]
        return options

    def tool(self, target: TargetView) -> str | None:
        """Return the name of the distribution with ONNX Runtime for GPUs, `onnxruntime-gpu`; None on a CPU."""
        return None if self.runs_on_cpu(target) else GPU_DISTRIBUTION

    def libraries(self, execution: ExecutionView) -> Libraries | None:
        """Return TensorRT's libraries for the TensorRT provider; the CUDA provider's come with `onnxruntime-gpu`."""
        return TENSORRT_LIBRARIES if execution.options.get("provider") == Provider.TENSORRT else None

    def tools(self, execution: ExecutionView) -> tuple[str, ...]:
        """Return the names of the distributions that run the model: `numpy`, and `onnxruntime` or `onnxruntime-gpu`."""
        return ("numpy", self.name if execution.hardware is None else execution.hardware.tool)

    def package_tools(self) -> tuple[str, ...]:
        """Return ONNX Runtime, which tries out whether a package can leave out optimizers."""
        return (self.name,)

    def facts(self, execution: ExecutionView) -> tuple[str, ...]:
        """Return the names of the facts that choose kernels: CPU and ONNX Runtime's build, or GPU and driver."""
        if execution.hardware is None:
            return _CPU_FACTS
        # TensorRT's version is a fact, not a tool: a machine without the GPU looks up results of a machine with one,
        # and need not have TensorRT installed.
        by_tensorrt = execution.options.get("provider") == Provider.TENSORRT
        return (*GPU_FACTS, "tensorrt.version") if by_tensorrt else GPU_FACTS

    def latency_facts(self, execution: ExecutionView) -> tuple[str, ...]:
        """Return the name of the fact that tells which distribution of ONNX Runtime is installed."""
        return ("onnxruntime.build",)

    def as_rival(self, execution: E) -> E:
        """Return how ONNX Runtime runs a rival: with the CPU provider, or on a GPU with the CUDA provider."""
        provider = Provider.CUDA if execution.on_gpu else Provider.CPU
        options = {"provider": provider.value}
        if "tf32" in execution.options:
            options["tf32"] = execution.options["tf32"]
        return execution.model_copy(update={"runtime": self.name, "options": options})

    def graphed(self, execution: E) -> E | None:
        """Return how the CUDA provider runs a model with CUDA graphs; None for the other providers."""
        if execution.options.get("provider") != Provider.CUDA:
            return None
        return execution.model_copy(update={"options": {**execution.options, "cuda_graph": True}})

    def rival_tools(self, *, library: str) -> tuple[str, ...]:
        """Return the names of the distributions that run the exported model: `numpy` and `onnxruntime`."""
        return ("numpy", self.name)
