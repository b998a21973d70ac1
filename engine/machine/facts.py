"""Facts of this machine: tool versions, CPU, GPU, driver."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import platform
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from engine.machine import cpu, cuda, local_gpus
from engine.triton_images import agrees

if TYPE_CHECKING:
    from engine.step import Hardware

MISSING = "not installed"

_STAND_INS = {
    "onnxruntime": ("onnxruntime-gpu",),
    "tensorrt": ("tensorrt-cu13", "tensorrt-cu12"),
    "tensorrt_rtx": ("tensorrt-rtx-cu13", "tensorrt-rtx-cu12"),
}
"""Distributions that provide the same import as another: whichever was installed last has overwritten the others."""
_SELF_DESCRIPTION = ("capi", "build_and_package_info.py")
"""Where ONNX Runtime's files say which of its distributions they are."""

_ISA = {
    "avx2", "avx512f", "avx512_vnni", "avx_vnni", "avx512_bf16", "avx512_fp16", "amx_int8", "amx_bf16",
    "asimd", "asimddp", "i8mm", "bf16", "sve",
}  # fmt: skip
"""CPU features that choose between kernels, as Linux names them; all others leave results alone."""

_SERVER = "triton.server"

VARIABLES = ("PATH",)
"""Environment variables that decide what is found on this machine."""


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


def facts(names: Iterable[str], hardware: Hardware | None = None) -> dict[str, str]:
    """Return the facts by name; those called `device.` are of the GPU of this machine that `hardware` means.

    Raises KeyError for a fact that nobody knows, and for one of a GPU that is not here.
    """
    server = {_SERVER: lambda: _triton_server(hardware)}
    known: dict[str, Callable[[], str]] = {**_FACTS, **server, **local_gpus.facts(hardware)}
    return {name: known[name]() for name in names}


def known_facts() -> Mapping[str, str]:
    """Return all facts of this machine but the server's, which takes a look at docker: few jobs depend on it."""
    return facts(_FACTS)


def can_run(hardware: Hardware) -> bool:
    """Say whether this machine has one of the GPUs, and the package that drives it in a version that will do."""
    found = version_of(hardware.tool)
    return found != MISSING and agrees(hardware.version or "", found) and local_gpus.local(hardware) is not None


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


def _triton_server(hardware: Hardware | None) -> str:
    from engine.server import fact as server_fact  # looking for a server takes modules that nothing else here needs

    return server_fact.triton_server(gpu=hardware is not None)


def cpu_count() -> int:
    """Return how many CPUs this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


_FACTS: Mapping[str, Callable[[], str]] = {
    "arch": platform.machine,
    # What a container's quota and threads that share a core leave of them counts, too.
    "cpu.count": lambda: f"{cpu_count()} (cores: {cpu.physical_cores()})",
    "cpu.isa": _cpu_isa,
    "cpu.model": _cpu_model,
    "cuda.runtime": cuda.runtime_version,
    "gpu.driver": local_gpus.driver,
    "gpu.name": local_gpus.names,
    "onnxruntime.build": lambda: build_of("onnxruntime"),
    "os": platform.system,
    "tensorrt.major": lambda: version_of("tensorrt").partition(".")[0],
    "tensorrt.version": lambda: version_of("tensorrt"),
}
