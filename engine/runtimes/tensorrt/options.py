"""Options of TensorRT's builder: their values as a pydantic model, and setting them."""

# Names and meanings of the options are those of IBuilderConfig, BuilderFlag and MemoryPoolType in NVIDIA's TensorRT
# API. No option sets a precision: the network is strongly typed and takes its types from the graph.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from engine.gpus.capabilities import FIRST_SM
from engine.runtimes.tensorrt.api import trt
from engine.runtimes.tensorrt_values import Compatibility, Pool, TilingLevel, Verbosity
from engine.step import Frozen

if TYPE_CHECKING:
    import tensorrt

_LEVELS = {"same-compute-capability": "SAME_COMPUTE_CAPABILITY", "ampere-plus": "AMPERE_PLUS"}
_FLAGS = ("version_compatible", "exclude_lean_runtime", "strip_plan", "refit", "weight_streaming", "sparse_weights")


class BuilderOptions(Frozen):
    """The options of TensorRT's builder for one build.

    Options that a recipe leaves out have TensorRT's defaults, except `profiling_verbosity`.
    """

    memory_pool: Mapping[Pool, int] = {}
    """The upper limit of each memory pool of TensorRT's builder, in bytes."""
    optimization_level: int | None = None
    """The level of optimization, 0 to 5: at a higher level TensorRT's builder searches longer for fast kernels."""
    tiling_optimization_level: TilingLevel | None = None
    max_aux_streams: int | None = None
    avg_timing_iterations: int | None = None
    profiling_verbosity: Verbosity = "detailed"
    """TensorRT's default is "layer_names_only"; the passport needs "detailed" for the precisions of the layers."""
    compatibility: Compatibility = "none"
    version_compatible: bool = False
    exclude_lean_runtime: bool = False
    strip_plan: bool = False
    refit: bool = False
    weight_streaming: bool = False
    sparse_weights: bool = False
    tf32: bool | None = None
    """Whether products of fp32 may be computed in TF32; None for TensorRT's default, which is true."""

    def as_dict(self) -> dict[str, object]:
        """Return the value of every option by the option's name, for the engine's passport."""
        return {name: getattr(self, name) for name in BuilderOptions.model_fields}


def tf32_words(options: BuilderOptions, precision: str, sms: Sequence[int]) -> str:
    """Return whether products of fp32 may be computed in TF32, and who decided; "" where no GPU or precision has it."""
    if precision != "fp32" or min(sms, default=0) < FIRST_SM["tf32"]:
        return ""
    allowed = "may be computed in TF32" if options.tf32 in (None, True) else "stay in fp32, without TF32"
    by = "TensorRT's default; `tf32: true` or `false` decides" if options.tf32 is None else "the recipe's `tf32`"
    return f"products of fp32 {allowed} ({by})"


def apply(options: BuilderOptions, config: tensorrt.IBuilderConfig) -> None:
    """Set `options` in the config of TensorRT's builder.

    TensorRT logs an error for an option that it does not accept.
    """
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
    if options.tf32 is not None:
        (config.set_flag if options.tf32 else config.clear_flag)(trt.BuilderFlag.TF32)
