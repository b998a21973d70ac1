"""Which of the runtimes for GPUs could run here, and what each of them lacks."""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from engine.machine import cuda

_DRIVER = "an NVIDIA driver that shows a GPU (libcuda.so.1)"
_CUDA_BINDINGS = ("cuda-bindings", "cuda.bindings")


@dataclass(frozen=True)
class GpuRuntime:
    """A runtime as recipes name it, and what it needs beside a driver."""

    name: str
    distributions: tuple[str, ...]
    modules: tuple[tuple[str, str], ...] = ()
    """Packages that are asked for by their module: the distribution, the module."""
    libraries: tuple[str, ...] = ()
    """Shared libraries that must be found; pip brings them in packages of their own."""


RUNTIMES = (
    GpuRuntime("onnxruntime, provider: cuda", ("onnxruntime-gpu",)),
    GpuRuntime("onnxruntime, provider: tensorrt", ("onnxruntime-gpu",), libraries=("libnvinfer.so.10",)),
    GpuRuntime("tensorrt", ("tensorrt",), (_CUDA_BINDINGS,)),
    GpuRuntime("tensorrt-rtx", ("tensorrt_rtx",), (_CUDA_BINDINGS,)),
)


def missing(runtime: GpuRuntime, installed: Callable[[str], bool]) -> list[str]:
    """Return what a runtime lacks to run a model here, nothing where it should; `installed` knows distributions."""
    lacks = [name for name in runtime.distributions if not installed(name)]
    lacks += [name for name, module in runtime.modules if not _found(module)]
    lacks += [name for name in runtime.libraries if not _loads(name)]
    return lacks if cuda.devices() else [_DRIVER, *lacks]


def table(installed: Callable[[str], bool]) -> Mapping[str, list[str]]:
    """Return what each runtime lacks, by its name."""
    return {runtime.name: missing(runtime, installed) for runtime in RUNTIMES}


def _found(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # of the package that it is in
        return False


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True
