"""TensorRT and TensorRT-RTX: their names, and the values of their options as recipes and builds name them."""

# Source: `MemoryPoolType`, `HardwareCompatibilityLevel`, `TilingOptimizationLevel` and `ProfilingVerbosity` of NVIDIA's
# TensorRT API, in lower case.

from __future__ import annotations

from typing import Literal, NamedTuple

Pool = Literal[
    "workspace", "dla_managed_sram", "dla_local_dram", "dla_global_dram", "tactic_dram", "tactic_shared_memory"
]
Compatibility = Literal["none", "same-compute-capability", "ampere-plus"]
TilingLevel = Literal["none", "fast", "moderate", "full"]
Verbosity = Literal["layer_names_only", "detailed", "none"]


class Product(NamedTuple):
    """One of NVIDIA's two products that build engines."""

    name: str
    """The name of the runtime in recipes."""
    title: str
    module: str
    """The name of the Python module that builds and runs engines, and of the distribution with this module."""
    package: str
    """The name of the distribution that pip installs."""
    anywhere: bool
    """Whether engines are built without the GPU that they run on."""


TENSORRT = Product("tensorrt", "TensorRT", "tensorrt", "tensorrt", anywhere=False)
TENSORRT_RTX = Product("tensorrt-rtx", "TensorRT-RTX", "tensorrt_rtx", "tensorrt-rtx-cu12", anywhere=True)
