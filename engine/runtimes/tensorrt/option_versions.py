"""The version of TensorRT that brought each option and each type of weights that a recipe can set."""

# The table is derived from NVIDIA's Python bindings of every TensorRT version of PyPI from 10.0.1 to 11.4.0: the
# members of the enums, and the attributes of IBuilderConfig. tests/support/tensorrt_names.py derives it again.

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from engine.runtimes import versions

OLDEST = "10.0"
"""The oldest TensorRT version in the table. What this version has may be older."""
PATH = "tensorrt"
"""The section of a recipe with the options of TensorRT's builder."""


@dataclass(frozen=True)
class Since:
    """One value of an option, the name of TensorRT's API that stands for it, and the version that brought the name.

    `at` is the path of the option below `tensorrt`. `value` is None for every value of the option. `nearest` is what a
    recipe for an older version can say instead.
    """

    at: tuple[str, ...]
    value: str | None
    api: str
    version: str = OLDEST
    nearest: str = "leave it out"

    @property
    def option(self) -> str:
        """The option as an error message names it: its value where only this value is newer, or else its name."""
        return self.value or ".".join(self.at)


TABLE = (
    Since(("compatibility",), "ampere-plus", "HardwareCompatibilityLevel.AMPERE_PLUS"),
    Since(("compatibility",), "same-compute-capability", "HardwareCompatibilityLevel.SAME_COMPUTE_CAPABILITY", "10.9"),
    Since(("tiling_optimization_level",), None, "IBuilderConfig.tiling_optimization_level", "10.8"),
    Since(("tiling_optimization_level",), "none", "TilingOptimizationLevel.NONE", "10.8"),
    Since(("tiling_optimization_level",), "fast", "TilingOptimizationLevel.FAST", "10.8"),
    Since(("tiling_optimization_level",), "moderate", "TilingOptimizationLevel.MODERATE", "10.8"),
    Since(("tiling_optimization_level",), "full", "TilingOptimizationLevel.FULL", "10.8"),
    Since(("memory_pool",), None, "IBuilderConfig.set_memory_pool_limit"),
    Since(("memory_pool", "workspace"), None, "MemoryPoolType.WORKSPACE"),
    Since(("memory_pool", "dla_managed_sram"), None, "MemoryPoolType.DLA_MANAGED_SRAM"),
    Since(("memory_pool", "dla_local_dram"), None, "MemoryPoolType.DLA_LOCAL_DRAM"),
    Since(("memory_pool", "dla_global_dram"), None, "MemoryPoolType.DLA_GLOBAL_DRAM"),
    Since(("memory_pool", "tactic_dram"), None, "MemoryPoolType.TACTIC_DRAM"),
    Since(("memory_pool", "tactic_shared_memory"), None, "MemoryPoolType.TACTIC_SHARED_MEMORY"),
    Since(("optimization_level",), None, "IBuilderConfig.builder_optimization_level"),
    Since(("max_aux_streams",), None, "IBuilderConfig.max_aux_streams"),
    Since(("avg_timing_iterations",), None, "IBuilderConfig.avg_timing_iterations"),
    Since(("profiling_verbosity",), "layer_names_only", "ProfilingVerbosity.LAYER_NAMES_ONLY"),
    Since(("profiling_verbosity",), "detailed", "ProfilingVerbosity.DETAILED"),
    Since(("profiling_verbosity",), "none", "ProfilingVerbosity.NONE"),
    Since(("timing_cache",), None, "IBuilderConfig.set_timing_cache"),
    Since(("plugins",), None, "IBuilderConfig.plugins_to_serialize"),
    Since(("version_compatible",), None, "BuilderFlag.VERSION_COMPATIBLE"),
    Since(("exclude_lean_runtime",), None, "BuilderFlag.EXCLUDE_LEAN_RUNTIME"),
    Since(("strip_plan",), None, "BuilderFlag.STRIP_PLAN"),
    Since(("refit",), None, "BuilderFlag.REFIT"),
    Since(("weight_streaming",), None, "BuilderFlag.WEIGHT_STREAMING"),
    Since(("sparse_weights",), None, "BuilderFlag.SPARSE_WEIGHTS"),
)
"""Rows with an option of a recipe each, as `engine.runtimes.tensorrt.options` sets it."""


def lacking(options: Mapping[str, Any], version: str) -> Iterator[Since]:
    """Yield the rows of the options that a recipe sets and that a version of TensorRT does not have yet."""
    for row in TABLE:
        if _is_set(options, row) and versions.is_later(row.version, than=version):
            yield row


def _is_set(options: Mapping[str, Any], row: Since) -> bool:
    value: Any = options
    for name in row.at:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value == row.value if row.value is not None else value is not None and value is not False
