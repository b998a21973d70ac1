"""Facts of the machine that belong to no runtime: CPU, system, GPUs, the GPU driver, and this program."""

from __future__ import annotations

import platform

from engine.facts import FACTS, Fact, Known
from engine.machine import cpu, cuda, local_gpus, tools
from engine.text import distribution

_ISA = {
    "avx2", "avx512f", "avx512_vnni", "avx_vnni", "avx512_bf16", "avx512_fp16", "amx_int8", "amx_bf16",
    "asimd", "asimddp", "i8mm", "bf16", "sve",
}  # fmt: skip
"""CPU features by which libraries choose kernels, as Linux names them.

A CPU feature that is not listed in `_ISA` does not change results.
"""


def cpu_isa() -> str:
    """Return the CPU's features by which libraries choose kernels, in one line; the architecture where it has none."""
    info = cpu.description()
    flags = set((info.get("flags") or info.get("Features") or "").split())
    return " ".join(sorted(flags & _ISA)) or platform.machine()


def _cuda_runtime() -> Known:
    """Return the version of the CUDA runtime, with the files of the Python packages that have the version."""
    packages = [tools.known(name) for name in cuda.RUNTIME_PACKAGES]
    return Known(cuda.runtime_version(), tuple(path for each in packages for path in each.paths))


FACTS.update(
    {
        "arch": Fact(lambda _: Known(platform.machine()), describes_machine=True),
        # The logical CPUs that this process may use, and the cores that a container's quota leaves of them.
        "cpu.count": Fact(
            lambda _: Known(f"{len(cpu.usable())} (cores: {cpu.physical_cores()})"), describes_machine=True
        ),
        "cpu.isa": Fact(lambda _: Known(cpu_isa()), describes_machine=True),
        "cpu.model": Fact(lambda _: Known(cpu.model()), describes_machine=True),
        "cuda.runtime": Fact(lambda _: _cuda_runtime(), describes_machine=True),
        "gpu.driver": Fact(lambda _: local_gpus.known(local_gpus.driver()), describes_machine=True),
        "gpu.name": Fact(lambda _: local_gpus.known(local_gpus.names()), describes_machine=True),
        "os": Fact(lambda _: Known(platform.system()), describes_machine=True),
        distribution.VERSION_FACT: Fact(lambda _: Known(distribution.version()), describes_machine=True),
    }
)
