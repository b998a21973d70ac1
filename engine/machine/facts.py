"""Facts of this machine that belong to no runtime: its CPU and system, its GPUs and their driver."""

from __future__ import annotations

import os
import platform
from functools import cache
from pathlib import Path

from engine.known import FACTS, Fact, Known
from engine.machine import cpu, cuda, local_gpus

_ISA = {
    "avx2", "avx512f", "avx512_vnni", "avx_vnni", "avx512_bf16", "avx512_fp16", "amx_int8", "amx_bf16",
    "asimd", "asimddp", "i8mm", "bf16", "sve",
}  # fmt: skip
"""CPU features that choose between kernels, as Linux names them; all others leave results alone."""


@cache
def _cpuinfo() -> dict[str, str]:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return {}
    first = text.split("\n\n", 1)[0]
    rows = (line.partition(":") for line in first.splitlines())
    return {name.strip(): value.strip() for name, _, value in rows}


def _cpu_model() -> str:
    return _cpuinfo().get("model name") or platform.processor() or platform.machine()


def _cpu_isa() -> str:
    info = _cpuinfo()
    flags = set((info.get("flags") or info.get("Features") or "").split())
    return " ".join(sorted(flags & _ISA)) or platform.machine()


def cpu_count() -> int:
    """Return how many CPUs this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


FACTS.update(
    {
        "arch": Fact(lambda _: Known(platform.machine()), describes_machine=True),
        # What a container's quota and threads that share a core leave of them counts, too.
        "cpu.count": Fact(lambda _: Known(f"{cpu_count()} (cores: {cpu.physical_cores()})"), describes_machine=True),
        "cpu.isa": Fact(lambda _: Known(_cpu_isa()), describes_machine=True),
        "cpu.model": Fact(lambda _: Known(_cpu_model()), describes_machine=True),
        "cuda.runtime": Fact(lambda _: cuda.runtime(), describes_machine=True),
        "gpu.driver": Fact(lambda _: local_gpus.known(local_gpus.driver()), describes_machine=True),
        "gpu.name": Fact(lambda _: local_gpus.known(local_gpus.names()), describes_machine=True),
        "os": Fact(lambda _: Known(platform.system()), describes_machine=True),
    }
)
