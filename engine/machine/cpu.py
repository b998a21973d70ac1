"""The CPU: its name, and the cores that a measurement may use."""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

_TOPOLOGY = "/sys/devices/system/cpu/cpu{}/topology/core_cpus_list"
_QUOTA = Path("/sys/fs/cgroup/cpu.max")


def physical_cores() -> int:
    """Return how many physical cores this process may use: two threads of one core count once.

    If a container has a CPU quota, the count is at most the quota. Outside Linux, every logical CPU counts as a core.
    """
    cores = {_siblings(number) for number in usable()}
    return max(1, min(len(cores), _quota()))


def usable() -> Sequence[int]:
    """Return the numbers of the logical CPUs that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return range(os.cpu_count() or 1)


def model() -> str:
    """Return the CPU's name, as the operating system reports it."""
    return description().get("model name") or platform.processor() or platform.machine()


def lacks_vnni() -> bool:
    """Return whether the CPU is known to be an x86 whose sums of products of 8-bit integers saturate at 16 bits."""
    flags = set(description().get("flags", "").split())
    return bool(flags) and not flags & {"avx512_vnni", "avx_vnni", "amx_int8"}


@cache
def description() -> Mapping[str, str]:
    """Return the rows of the first CPU in Linux's /proc/cpuinfo; {} on other systems."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return {}
    rows = (line.partition(":") for line in text.split("\n\n", 1)[0].splitlines())
    return {name.strip(): value.strip() for name, _, value in rows}


def _siblings(number: int) -> str:
    try:
        return Path(_TOPOLOGY.format(number)).read_text().strip()
    except OSError:
        return str(number)


def _quota() -> int:
    """Return the cores that a container may keep busy (cgroup v2: "quota period", or "max")."""
    try:
        quota, period = _QUOTA.read_text().split()
        return max(1, math.floor(int(quota) / int(period)))
    except (OSError, ValueError):
        return os.cpu_count() or 1
