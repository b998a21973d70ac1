"""Facts of this machine: tool versions, CPU, GPU, driver."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path

from engine import gpus as catalogue
from engine.kit import cpu
from engine.step import Hardware

MISSING = "not installed"

_GPU_TOOL = "nvidia-smi"

_STAND_INS = {"onnxruntime": ("onnxruntime-gpu",)}
"""Distributions that provide the same import as another: whichever was installed last has overwritten the others."""
_SELF_DESCRIPTION = ("capi", "build_and_package_info.py")
"""Where ONNX Runtime's files say which of its distributions they are."""

_ISA = {
    "avx2", "avx512f", "avx512_vnni", "avx_vnni", "avx512_bf16", "avx512_fp16", "amx_int8", "amx_bf16",
    "asimd", "asimddp", "i8mm", "bf16", "sve",
}  # fmt: skip
"""CPU features that choose between kernels, as Linux names them; all others leave results alone."""


@dataclass(frozen=True)
class LocalGpu:
    """A GPU of this machine, as the driver describes it."""

    name: str
    sm: int
    memory_mib: int
    driver: str


VARIABLES = ("PATH",)
"""Environment variables that decide what is found on this machine."""


def watched() -> list[str]:
    """Return the places of the program that tells of GPUs: when it comes or goes, jobs may run, or wait."""
    return [os.path.join(folder, _GPU_TOOL) for folder in os.environ.get("PATH", "").split(os.pathsep)]


def tools(names: Iterable[str]) -> dict[str, str]:
    """Return the installed version of each distribution, or MISSING."""
    return {name: version_of(name) for name in names}


def version_of(distribution: str) -> str:
    """Return the installed version of a distribution or of its stand-in, or MISSING; looked up once."""
    if distribution not in _versions:
        _versions[distribution] = _installed(distribution)
    return _versions[distribution]


def tools_changed() -> bool:
    """Say whether a version that was asked for is another one by now: somebody installs while we run."""
    return any(_installed(name) != version for name, version in _versions.items())


_versions: dict[str, str] = {}


def _installed(distribution: str) -> str:
    found = _distribution(distribution)
    return MISSING if found is None else found.version


@cache
def build_of(distribution: str) -> str:
    """Return which distribution provides an import that several can provide, or MISSING."""
    found = _distribution(distribution)
    return MISSING if found is None else str(found.metadata["Name"])


def metadata_files(names: Iterable[str]) -> list[Path]:
    """Return the metadata files behind the versions, for those who watch them for changes."""
    found = [distribution for name in names if (distribution := _distribution(name)) is not None]
    own = [Path(str(getattr(distribution, "_path", ""))) for distribution in found]
    return [path / "METADATA" for path in own if (path / "METADATA").is_file()]


def _distribution(name: str) -> metadata.Distribution | None:
    """Return the distribution that provides an import; of several, the one that the files themselves name."""
    found: list[metadata.Distribution] = []
    for candidate in (name, *_STAND_INS.get(name, ())):
        with contextlib.suppress(metadata.PackageNotFoundError):
            found.append(metadata.distribution(candidate))
    if len(found) > 1:
        own = _own_name(name)
        found.sort(key=lambda distribution: distribution.metadata["Name"] != own)
    return found[0] if found else None


def _own_name(module: str) -> str | None:
    """Return what a package that several distributions provide says that it is, without importing it."""
    spec = importlib.util.find_spec(module)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        with contextlib.suppress(OSError):
            said = re.search(r"package_name = '([\w-]+)'", Path(folder, *_SELF_DESCRIPTION).read_text("utf-8"))
            if said:
                return said[1]
    return None


def facts(names: Iterable[str]) -> dict[str, str]:
    """Return the facts by name. Raises KeyError for a fact that nobody knows."""
    return {name: _FACTS[name]() for name in names}


def known_facts() -> Mapping[str, str]:
    """Return all facts of this machine."""
    return facts(_FACTS)


@cache
def gpus() -> tuple[LocalGpu, ...]:
    """Return the NVIDIA GPUs that the driver of this machine shows; none without a driver."""
    program = shutil.which(_GPU_TOOL)
    if program is None:
        return ()
    query = "--query-gpu=name,compute_cap,memory.total,driver_version"
    try:
        answer = subprocess.run(  # noqa: S603 - a fixed command line, found on the PATH
            [program, query, "--format=csv,noheader,nounits"], capture_output=True, text=True, timeout=20, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ()
    return tuple(_gpu(line) for line in answer.stdout.splitlines() if line.count(",") == 3)  # noqa: PLR2004 - the query's fields


def can_run(hardware: Hardware) -> bool:
    """Say whether this machine has one of the GPUs and the package that drives it."""
    return version_of(hardware.tool) != MISSING and any(
        catalogue.matches(local.name, device.name) for local in gpus() for device in hardware.devices
    )


def _gpu(line: str) -> LocalGpu:
    name, capability, memory, driver = (field.strip() for field in line.split(","))
    digits = capability.replace(".", "")
    return LocalGpu(name, int(digits) if digits.isdigit() else 0, int(memory) if memory.isdigit() else 0, driver)


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


def _gpu_names() -> str:
    return ", ".join(f"{gpu.name} (sm_{gpu.sm})" for gpu in gpus()) or "none"


_FACTS = {
    "arch": platform.machine,
    # What a container's quota and threads that share a core leave of them counts, too.
    "cpu.count": lambda: f"{cpu_count()} (cores: {cpu.physical_cores()})",
    "cpu.isa": _cpu_isa,
    "cpu.model": _cpu_model,
    "gpu.driver": lambda: next((gpu.driver for gpu in gpus()), "none"),
    "gpu.name": _gpu_names,
    "onnxruntime.build": lambda: build_of("onnxruntime"),
    "os": platform.system,
}
