"""Values of TensorRT's options, as recipes and builds name them."""

# Source: `MemoryPoolType`, `HardwareCompatibilityLevel`, `TilingOptimizationLevel` and `ProfilingVerbosity` of NVIDIA's
# TensorRT API, in lower case.

from __future__ import annotations

from typing import Literal

Pool = Literal[
    "workspace", "dla_managed_sram", "dla_local_dram", "dla_global_dram", "tactic_dram", "tactic_shared_memory"
]
Compatibility = Literal["none", "same-compute-capability", "ampere-plus"]
TilingLevel = Literal["none", "fast", "moderate", "full"]
Verbosity = Literal["layer_names_only", "detailed", "none"]
