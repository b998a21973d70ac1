"""Versions and GPUs from the CUDA driver and runtime libraries, read without any Python package."""

from __future__ import annotations

import ctypes
import uuid
from dataclasses import dataclass
from functools import cache
from importlib import metadata

_DRIVER = "libcuda.so.1"
_RUNTIMES = ("libcudart.so", "libcudart.so.13", "libcudart.so.12")
RUNTIME_PACKAGES = ("nvidia-cuda-runtime", "nvidia-cuda-runtime-cu13", "nvidia-cuda-runtime-cu12")
"""The distributions whose version is that of the CUDA runtime."""
_NAME_LENGTH = 256
_UUID_BYTES = 16
_SLICE = b" MIG "

# CUdevice_attribute of NVIDIA's CUDA driver API (cuda.h).
_SHARED_MEMORY_PER_BLOCK = 8
_SM_COUNT = 16
_INTEGRATED = 18
_ECC = 32
_MEMORY_BUS_WIDTH = 37
_L2_BYTES = 38
_CAPABILITY_MAJOR = 75
_CAPABILITY_MINOR = 76
_SHARED_MEMORY_PER_SM = 81


@dataclass(frozen=True)
class CudaDevice:
    """A GPU as the CUDA driver describes it: sizes in bytes, the bus in bits.

    A MIG slice of a GPU has "MIG" in its name, and a UUID of its own. `uuid` is as NVML writes it, "GPU-..." or
    "MIG-..."; it is empty if the driver does not tell it.
    """

    name: str
    sm: int
    sm_count: int
    memory: int
    memory_bus_width: int
    l2_bytes: int
    shared_memory_per_block: int
    shared_memory_per_sm: int
    ecc: bool
    integrated: bool
    uuid: str = ""


@cache
def devices() -> tuple[CudaDevice, ...]:
    """Return the GPUs that CUDA shows to this process; () without a driver."""
    driver = library(_DRIVER)
    count = ctypes.c_int(0)
    if driver is None or driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return ()
    return tuple(_device(driver, number) for number in range(count.value))


@cache
def supported() -> tuple[int, int] | None:
    """Return the latest version of CUDA that the driver supports, such as (12, 4); None without a driver."""
    driver, version = library(_DRIVER), ctypes.c_int(0)
    if driver is None or driver.cuDriverGetVersion(ctypes.byref(version)) != 0:
        return None
    return version.value // 1000, version.value % 1000 // 10


@cache
def runtime_version() -> str:
    """Return the version of the installed CUDA runtime, such as "12.9"; "none" without a runtime."""
    for name in RUNTIME_PACKAGES:
        try:
            return ".".join(metadata.version(name).split(".")[:2])
        except metadata.PackageNotFoundError:
            continue
    version = ctypes.c_int(0)
    for name in _RUNTIMES:
        runtime = library(name)
        if runtime is not None and runtime.cudaRuntimeGetVersion(ctypes.byref(version)) == 0:
            return f"{version.value // 1000}.{version.value % 1000 // 10}"
    return "none"


def free_memory() -> int | None:
    """Return the free bytes of the GPU that this thread computes on; None without a driver, or before a computation.

    The memory of other programs on the GPU is not free. Source: cuMemGetInfo of NVIDIA's CUDA driver API.
    """
    driver, free, total = library(_DRIVER), ctypes.c_size_t(0), ctypes.c_size_t(0)
    if driver is None or driver.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)) != 0:
        return None
    return free.value


def library(name: str) -> ctypes.CDLL | None:
    """Load a shared library of this machine and return it; None where it cannot be loaded."""
    try:
        return ctypes.CDLL(name)
    except OSError:
        return None


def _device(driver: ctypes.CDLL, number: int) -> CudaDevice:
    handle = ctypes.c_int(0)
    driver.cuDeviceGet(ctypes.byref(handle), number)
    name = ctypes.create_string_buffer(_NAME_LENGTH)
    driver.cuDeviceGetName(name, _NAME_LENGTH, handle)
    memory = ctypes.c_size_t(0)
    driver.cuDeviceTotalMem_v2(ctypes.byref(memory), handle)

    def attribute(which: int) -> int:
        value = ctypes.c_int(0)
        driver.cuDeviceGetAttribute(ctypes.byref(value), which, handle)
        return value.value

    return CudaDevice(
        name=name.value.decode("utf-8", "replace"),
        sm=attribute(_CAPABILITY_MAJOR) * 10 + attribute(_CAPABILITY_MINOR),
        sm_count=attribute(_SM_COUNT),
        memory=memory.value,
        memory_bus_width=attribute(_MEMORY_BUS_WIDTH),
        l2_bytes=attribute(_L2_BYTES),
        shared_memory_per_block=attribute(_SHARED_MEMORY_PER_BLOCK),
        shared_memory_per_sm=attribute(_SHARED_MEMORY_PER_SM),
        ecc=bool(attribute(_ECC)),
        integrated=bool(attribute(_INTEGRATED)),
        uuid=_uuid(driver, handle, "MIG" if _SLICE in name.value else "GPU"),
    )


def _uuid(driver: ctypes.CDLL, handle: ctypes.c_int, kind: str) -> str:
    """Return a GPU's UUID as NVML writes it. `cuDeviceGetUuid_v2` tells that of a MIG slice, not that of its board."""
    ask = getattr(driver, "cuDeviceGetUuid_v2", None)  # since CUDA 11.4
    value = ctypes.create_string_buffer(_UUID_BYTES)
    if ask is None or ask(ctypes.byref(value), handle) != 0:
        return ""
    return f"{kind}-{uuid.UUID(bytes=value.raw)}"
