"""NVML, the library of NVIDIA's driver that describes boards: the driver's version, MIG, clocks, power, throttling."""

# The Python package `nvidia-ml-py` (module `pynvml`) calls the library. NVML describes boards and does not heed
# CUDA_VISIBLE_DEVICES; which GPUs a program can use is only known from CUDA (`engine.machine.cuda`). The two are joined
# by the UUID of a GPU, or of a MIG slice.

# Sources: NVIDIA, NVML API Reference (nvmlDeviceQueries, nvmlClocksEventReasons, nvmlMultiInstanceGPU).

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from engine.system import regular

_REASONS: Mapping[int, str] = {
    0x02: "clocks set by the user",
    0x04: "power cap",
    0x08: "slowed by the hardware",
    0x10: "sync boost",
    0x20: "hot (software slowdown)",
    0x40: "hot (hardware slowdown)",
    0x80: "power brake",
    0x100: "display clocks",
    0x200: "board limit",
    0x400: "reliability",
}
"""Bit of NVML's "clocks event reasons" -> the reason in words. The bit 1, an idle GPU, is no reason."""
_MODULE = "/proc/driver/nvidia/version"
"""The file in which the kernel module of NVIDIA's driver writes its version."""
_MODULE_VERSION = re.compile(r"Kernel Module.*?\s([0-9]+\.[0-9.]+)\s")
_MIG_ON = 1
_MILLI = 1000


@dataclass(frozen=True)
class GpuBoard:
    """A board, as NVML describes it. `divided` tells whether MIG is on, so that CUDA shows slices only."""

    name: str
    uuid: str
    divided: bool


@dataclass(frozen=True, kw_only=True)
class BoardState:
    """The state of a board at one moment; None for what nobody tells of it."""

    driver: str | None
    sm_mhz: int | None
    max_sm_mhz: int | None
    memory_mhz: int | None
    celsius: int | None
    watts: int | None = None
    watt_limit: int | None = None
    throttled: tuple[str, ...] | None = None


def driver() -> str | None:
    """Return the version of the driver, such as "580.65.06"; None without NVML."""
    nvml = library()
    return None if nvml is None else _ask(nvml, nvml.nvmlSystemGetDriverVersion)


def installed_driver() -> str | None:
    """Return the version of the driver as `driver` does; without NVML, the version of the kernel's module."""
    if version := driver():
        return version
    try:
        match = _MODULE_VERSION.search(regular.read_text(_MODULE))
    except OSError:
        return None
    return match[1] if match else None


def boards() -> tuple[GpuBoard, ...]:
    """Return the boards of this machine, also those that CUDA hides; () without NVML."""
    nvml = library()
    count = 0 if nvml is None else _ask(nvml, nvml.nvmlDeviceGetCount) or 0
    listed = []
    for number in range(count):
        handle = _ask(nvml, nvml.nvmlDeviceGetHandleByIndex, number)
        if handle is not None:
            name, uuid = (_ask(nvml, ask, handle) or "" for ask in (nvml.nvmlDeviceGetName, nvml.nvmlDeviceGetUUID))
            mode = _ask(nvml, nvml.nvmlDeviceGetMigMode, handle)
            listed.append(GpuBoard(name, uuid, divided=bool(mode) and mode[0] == _MIG_ON))
    return tuple(listed)


def state(uuid: str) -> BoardState | None:
    """Return the present state of the GPU with a UUID; for a MIG slice, the state of its board.

    The result is None without NVML, and for a UUID that NVML does not know.
    """
    nvml = library()
    if nvml is None or not uuid:
        return None
    handle = _ask(nvml, nvml.nvmlDeviceGetHandleByUUID, uuid)
    if handle is None:
        return None
    if _ask(nvml, nvml.nvmlDeviceIsMigDeviceHandle, handle):  # a slice has no clocks, power or temperature of its own
        handle = _ask(nvml, nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle, handle)

    def of(name: str, *arguments: int) -> Any:
        return _ask(nvml, getattr(nvml, name), handle, *arguments)

    reasons, drawn, limit = (
        of("nvmlDeviceGetCurrentClocksThrottleReasons"), of("nvmlDeviceGetPowerUsage"),
        of("nvmlDeviceGetEnforcedPowerLimit"),
    )  # fmt: skip
    return BoardState(
        driver=driver(),
        sm_mhz=of("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_SM),
        max_sm_mhz=of("nvmlDeviceGetMaxClockInfo", nvml.NVML_CLOCK_SM),
        memory_mhz=of("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_MEM),
        celsius=of("nvmlDeviceGetTemperature", nvml.NVML_TEMPERATURE_GPU),
        watts=None if drawn is None else round(drawn / _MILLI),
        watt_limit=None if limit is None else round(limit / _MILLI),
        throttled=None if reasons is None else tuple(why for bit, why in _REASONS.items() if reasons & bit),
    )


@cache
def library() -> Any:
    """Return the module `pynvml` with a started NVML; None without the package, or without the driver's library."""
    try:
        nvml = importlib.import_module("pynvml")
    except ModuleNotFoundError:
        return None
    try:
        nvml.nvmlInit()
    except nvml.NVMLError:
        return None
    return nvml


def _ask(nvml: Any, function: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a function of NVML returns; None where the driver or the GPU does not support the question."""
    try:
        return function(*arguments)
    except nvml.NVMLError:
        return None
