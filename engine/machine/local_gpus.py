"""The NVIDIA GPUs of this machine, the CUDA of their driver, and the facts that a TensorRT engine depends on."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING

from engine import gpus as catalogue
from engine.facts import FACTS, Fact, Known, places_on_path
from engine.machine import cuda, nvml, tools
from engine.machine.gpu_state import query

if TYPE_CHECKING:
    from engine.step import Hardware

DEVICE = "device."
"""The prefix in the names of facts about one GPU, for example `device.name`."""
_TOOL = "nvidia-smi"
_FIELDS = ("name", "compute_cap", "driver_version")
_VISIBLE = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER")
"""Environment variables that hide GPUs from CUDA, and order them."""
_LEAST_DRIVERS = {11: "450", 12: "525", 13: "580"}
"""Major version of CUDA -> the first branch of NVIDIA's driver that runs programs that are built with it.

Source: NVIDIA, CUDA Compatibility, Minor Version Compatibility:
https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html
"""
_NAMED = re.compile(r"[-_]cu([0-9]{2})(?![0-9])")
"""The major version of CUDA in the name of a distribution: `tensorrt_cu12`."""


@dataclass(frozen=True)
class LocalGpu:
    """A GPU of this machine, or a MIG slice or a vGPU, as the driver describes it to CUDA programs."""

    name: str
    sm: int
    driver: str
    uuid: str = ""


def known(value: str) -> Known:
    """Return a value from the driver as a fact that depends on where nvidia-smi is, or could be, on the PATH."""
    return Known(value, tuple(places_on_path(_TOOL)), ("PATH", *_VISIBLE))


@cache
def gpus() -> tuple[LocalGpu, ...]:
    """Return the NVIDIA GPUs that programs on this machine can use, in CUDA's order; () without a driver.

    CUDA tells them, because CUDA alone knows MIG slices and what CUDA_VISIBLE_DEVICES hides. Where CUDA shows nothing
    and NVML does not work either, nvidia-smi tells what there should be; a job then fails with what CUDA says.
    """
    shown = cuda.devices()
    if shown:
        version = nvml.installed_driver() or _queried_driver()
        return tuple(LocalGpu(each.name, each.sm, version, each.uuid) for each in shown)
    return () if nvml.library() is not None else tuple(_gpu(row) for row in query(_FIELDS))


def look_again() -> None:
    """Forget the GPUs, and CUDA's versions: a process that lives for days looks again before it vouches for them."""
    for known_once in (gpus, cuda.devices, cuda.supported, cuda.runtime_version):
        known_once.cache_clear()


def hidden() -> str:
    """Return why programs cannot use the boards of this machine, if CUDA shows no GPU and NVML boards; else ""."""
    boards = nvml.boards()
    if gpus() or not boards:
        return ""
    names = ", ".join(board.name for board in boards)
    if any(board.divided for board in boards):
        return f"this machine has {names}, on which MIG is on, and CUDA shows no slice: `nvidia-smi mig -cgi` makes one"
    return f"this machine has {names}, but CUDA shows no GPU: CUDA_VISIBLE_DEVICES may hide it, or libcuda is missing"


def local(hardware: Hardware) -> LocalGpu | None:
    """Return the first GPU of this machine that the hardware names, or None."""
    return next((gpu for gpu in gpus() if hardware.includes(gpu.name)), None)


def name_of(hardware: Hardware | None) -> str:
    """Return the name, in its driver, of the GPU that a job with this hardware runs on; "" without such a GPU."""
    gpu = None if hardware is None else local(hardware)
    return "" if gpu is None else gpu.name


def _tell(name: str, hardware: Hardware | None) -> Known:
    """Return the fact `name` about the GPU of this machine that `hardware` names.

    Raises KeyError for a GPU that this machine lacks.
    """
    gpu = local(hardware) if hardware is not None else None
    if gpu is None:
        raise KeyError(name)
    return known(_FACTS[name](gpu))


def has(rows: Mapping[str, str]) -> bool:
    """Say whether a GPU of this machine has the facts in `rows`. Raises KeyError for an unknown fact."""
    return any(all(_FACTS[name](gpu) == value for name, value in rows.items()) for gpu in gpus())


def names() -> str:
    """Return the names of all GPUs of this machine, joined to one text."""
    return ", ".join(catalogue.with_capability(gpu.name, gpu.sm) for gpu in gpus()) or "none"


def driver() -> str:
    """Return the version of the NVIDIA driver, "none" without a driver."""
    return next((gpu.driver for gpu in gpus()), "none")


def _queried_driver() -> str:
    """Return the version of the driver from nvidia-smi, which writes it as NVML and the kernel do."""
    return next((row["driver_version"] for row in query(("driver_version",))), "unknown")


def _gpu(row: Mapping[str, str]) -> LocalGpu:
    name, capability, driver = (row[field] for field in _FIELDS)
    digits = capability.replace(".", "")
    return LocalGpu(name, int(digits) if digits.isdigit() else 0, driver)


def _described(name: str, gpu: LocalGpu) -> str:
    """Return the attribute `name` of a GPU as the CUDA driver tells it."""
    same = (device for device in cuda.devices() if (device.uuid, device.name) == (gpu.uuid, gpu.name))
    described = next(same, None)
    return "unknown" if described is None else str(getattr(described, name)).lower()


def major_of(distribution: str) -> int | None:
    """Return the major version of CUDA that an installed distribution was built with; None if its metadata is silent.

    A distribution says it in its name, or in the names of the distributions that it needs.
    """
    provider = tools.provider(distribution)
    if provider is None:
        return None
    names = [str(provider.metadata["Name"]), *(provider.requires or ())]
    return next((int(match[1]) for match in map(_NAMED.search, names) if match), None)


def driver_lacks(distribution: str) -> str | None:
    """Return what the driver here lacks for an installed distribution; None if it is sufficient, or nobody knows."""
    built, here = major_of(distribution), cuda.supported()
    if built is None or here is None or here[0] >= built:
        return None
    version = f"CUDA {here[0]}.{here[1]}"
    least = _LEAST_DRIVERS.get(built)
    needs = f", which needs driver {least} or later" if least else ""
    return f"the driver supports {version}, and {distribution} is built for CUDA {built}{needs}"


_FACTS: Mapping[str, Callable[[LocalGpu], str]] = {
    "device.ampere_plus": lambda gpu: f"sm>={catalogue.AMPERE}" if gpu.sm >= catalogue.AMPERE else str(gpu.sm),
    "device.mig": lambda gpu: gpu.name.partition(" MIG ")[2] or "none",
    "device.name": lambda gpu: gpu.name,
    "device.sm": lambda gpu: str(gpu.sm),
    **{
        f"{DEVICE}{name}": partial(_described, name)
        for name in ("ecc", "integrated", "l2_bytes", "memory", "memory_bus_width", "shared_memory_per_block",
                     "shared_memory_per_sm", "sm_count")
    },
}  # fmt: skip
"""The facts about one GPU that NVIDIA's compatibility checks of an engine read."""
FACTS.update({name: Fact(partial(_tell, name)) for name in _FACTS})
