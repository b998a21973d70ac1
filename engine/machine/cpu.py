"""The CPU: how many cores a measurement may use, and what it is called."""

from __future__ import annotations

import math
import os
import platform
from pathlib import Path

_TOPOLOGY = "/sys/devices/system/cpu/cpu{}/topology/core_cpus_list"
_QUOTA = Path("/sys/fs/cgroup/cpu.max")


def physical_cores() -> int:
    """Return how many physical cores this process may use: of two threads of one core, only one counts.

    A container's quota counts too. Where the system does not tell (outside Linux), every logical CPU is a core.
    """
    allowed = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    cores = {_siblings(number) for number in allowed}
    return max(1, min(len(cores), _quota()))


def model() -> str:
    """Return what the CPU calls itself."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, "") or platform.processor() or platform.machine()


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
