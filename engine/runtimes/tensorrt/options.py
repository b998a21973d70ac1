"""What the builder is told: the options of a TensorRT build, and setting them."""

# Names and meaning: IBuilderConfig, BuilderFlag and MemoryPoolType of NVIDIA's TensorRT API. The precision is none of
# them: it is in the graph, whose network is strongly typed.

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from engine.errors import StepError
from engine.runtimes.tensorrt.api import meant, trt
from engine.step import Frozen

if TYPE_CHECKING:
    import tensorrt

Pool = Literal[
    "workspace", "dla_managed_sram", "dla_local_dram", "dla_global_dram", "tactic_dram", "tactic_shared_memory"
]
Compatibility = Literal["none", "same-compute-capability", "ampere-plus"]

_LEVELS = {"same-compute-capability": "SAME_COMPUTE_CAPABILITY", "ampere-plus": "AMPERE_PLUS"}
_FLAGS = ("version_compatible", "exclude_lean_runtime", "strip_plan", "refit", "weight_streaming", "sparse_weights")
_NEED_GPU = ("refit", "strip_plan", "version_compatible", "exclude_lean_runtime")
"""What TensorRT-RTX offers only where a GPU is at hand while it builds, or through libraries that it does not bring."""


class BuilderOptions(Frozen):
    """What the recipe says of a build; what it does not say stays TensorRT's own default, but for the verbosity."""

    memory_pool: Mapping[Pool, int] = {}
    """Bytes by the name of the pool."""
    optimization_level: int | None = None
    """0 to 5: how long TensorRT looks for fast kernels."""
    tiling_optimization_level: Literal["none", "fast", "moderate", "full"] | None = None
    max_aux_streams: int | None = None
    avg_timing_iterations: int | None = None
    profiling_verbosity: Literal["layer_names_only", "detailed", "none"] = "detailed"
    """Detailed, unlike TensorRT's default: the passport tells the precisions found in the built layers."""
    compatibility: Compatibility = "none"
    version_compatible: bool = False
    exclude_lean_runtime: bool = False
    strip_plan: bool = False
    refit: bool = False
    weight_streaming: bool = False
    sparse_weights: bool = False

    def told(self) -> dict[str, object]:
        """Return every option with its value, as a passport lists them."""
        return {name: getattr(self, name) for name in BuilderOptions.model_fields}


def refuse(options: BuilderOptions, runtime: str) -> None:
    """Raise StepError for options that contradict each other, or that this runtime does not have."""
    if options.exclude_lean_runtime and not options.version_compatible:
        raise StepError(
            "exclude_lean_runtime says what a version-compatible engine leaves out, and this is none",
            hint="say version_compatible: true, or leave exclude_lean_runtime out",
        )
    if not meant(runtime).anywhere:
        return
    asked = [name for name in _NEED_GPU if getattr(options, name)]
    asked += [f"memory_pool.{pool}" for pool in options.memory_pool if pool.startswith("dla")]
    asked += [f"compatibility: {options.compatibility}"] if options.compatibility != "none" else []
    if asked:
        raise StepError(
            f"TensorRT-RTX cannot build with: {', '.join(asked)}",
            ["its engines are for the GPUs that the recipe names, and are built without one"],
            "leave it out (several devices in target.device make one engine for all of them), or use runtime: tensorrt",
        )


def apply(options: BuilderOptions, config: tensorrt.IBuilderConfig) -> None:
    """Set all that the recipe says; what TensorRT does not accept it says in the log."""
    for pool, size in options.memory_pool.items():
        config.set_memory_pool_limit(getattr(trt.MemoryPoolType, pool.upper()), size)
    if options.optimization_level is not None:
        config.builder_optimization_level = options.optimization_level
    if options.tiling_optimization_level is not None:
        level = options.tiling_optimization_level.upper()
        config.tiling_optimization_level = getattr(trt.TilingOptimizationLevel, level)
    if options.max_aux_streams is not None:
        config.max_aux_streams = options.max_aux_streams
    if options.avg_timing_iterations is not None:
        config.avg_timing_iterations = options.avg_timing_iterations
    config.profiling_verbosity = getattr(trt.ProfilingVerbosity, options.profiling_verbosity.upper())
    if options.compatibility != "none":
        level = _LEVELS[options.compatibility]
        config.hardware_compatibility_level = getattr(trt.HardwareCompatibilityLevel, level)
    for name in _FLAGS:
        if getattr(options, name):
            config.set_flag(getattr(trt.BuilderFlag, name.upper()))
