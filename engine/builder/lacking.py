"""What a machine lacks for a job that waits: the GPU, or the software that drives the GPU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine import gpus
from engine.machine import drivers, local_gpus, shared_libraries, tools
from engine.runtimes.releases import exists, requirement
from engine.runtimes.versions import agrees

if TYPE_CHECKING:
    from engine.step import Hardware

_THERE = "run the same command there with this cache (copy cache/ along, or share it)"
"""What to do if the GPU is in another machine."""
_AGAIN = "then run the same command again"


@dataclass(frozen=True)
class Lack:
    """What a machine lacks for a job, and what to do about it.

    `has_gpu` tells whether the machine has a GPU that the job can run on. `here` says what the machine has instead of
    what the job needs; it is empty for a machine without GPUs. `package` is what pip has to install, empty where that
    does not help; `in_the_way` is the distribution that pip has to remove before.
    """

    has_gpu: bool
    here: str
    remedy: str
    package: str = ""
    in_the_way: str = ""

    @property
    def advice(self) -> str:
        """What the machine has, and what to do: "this machine has Tesla T4 (sm_75), but ...; pip install ..."."""
        return "; ".join(filter(None, (self.here, self.remedy)))


def lack(hardware: Hardware) -> Lack | None:
    """Return what this machine lacks for a job that must run on `hardware`; None if it can run here."""
    gpu = local_gpus.local(hardware)
    if gpu is None:
        return Lack(has_gpu=False, here=_others(hardware), remedy=_THERE)
    name = gpus.with_capability(gpu.name, gpu.sm)
    has = f"this machine has {name}"
    return _tool(hardware, has) or _libraries(hardware, has)


def _tool(hardware: Hardware, has: str) -> Lack | None:
    """Return what is wrong with the Python package that drives the GPU; the text `has` names the GPU."""
    version = tools.version_of(hardware.tool)
    package = requirement(hardware.tool, hardware.version)
    install = f"pip install {package}, {_AGAIN}"
    if version == tools.MISSING:
        other = tools.in_the_way(hardware.tool) or ""
        remedy = f"pip uninstall -y {other} && {install}" if other else install
        here = f"{has}, but {hardware.tool} is not installed"
        return Lack(has_gpu=True, here=here, remedy=remedy, package=package, in_the_way=other)
    if not agrees(hardware.version or "", version):
        here = f"{has}, but {hardware.tool} {version} instead of {hardware.version}"
        if not exists(hardware.tool, hardware.version):
            remedy = f'pip has no such release of {hardware.tool}; change the recipe: version: "{version}"'
            return Lack(has_gpu=True, here=here, remedy=remedy)
        remedy = f'{install} (or change the recipe: version: "{version}")'
        return Lack(has_gpu=True, here=here, remedy=remedy, package=package)
    if old := drivers.lacking(hardware.tool):
        remedy = "update the driver, or install a build of the package for the CUDA that the driver supports"
        return Lack(has_gpu=True, here=f"{has}, but {old}", remedy=remedy)
    return None


def _libraries(hardware: Hardware, has: str) -> Lack | None:
    """Return which of the libraries are absent that the Python package loads and does not bring."""
    absent = [library for library in hardware.libraries if not shared_libraries.is_here(library)]
    if not absent:
        return None
    here = f"{has}, but not {' and '.join(absent)}, which {hardware.tool} loads"
    package = hardware.brought_by
    return Lack(has_gpu=True, here=here, remedy=f"pip install {package}, {_AGAIN}", package=package)


def _others(hardware: Hardware) -> str:
    """Return what this machine has instead of the GPUs in `hardware`: other GPUs, slices of GPUs, or hidden ones."""
    here = local_gpus.gpus()
    if not here:
        return local_gpus.hidden()
    near = [gpu.name for gpu in here if gpu.sm in {device.sm for device in hardware.devices}]
    known = (gpus.known(name) for name in near)
    named = next((f"; for it, a recipe says `target.device: {gpu.name}`" for gpu in known if gpu is not None), "")
    return f"this machine has {local_gpus.names()}{named}"
