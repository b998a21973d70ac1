"""Needs: what this machine lacks to run the jobs of recipes, and the one command that installs it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.builder import lacking
from engine.machine import tools
from engine.runtimes import gpu_runtimes
from engine.runtimes.releases import requirement
from engine.runtimes.versions import agrees
from engine.text import distribution

if TYPE_CHECKING:
    from engine.builder.job import Job
    from engine.step import Hardware


@dataclass(frozen=True)
class Lacks:
    """What this machine lacks for some jobs.

    `absent` has the names of Python packages that an extra of this project installs, `drivers` the requirements for pip
    of packages that drive a GPU of this machine. `waits` maps a sentence, which says what else is lacking and what to
    do, to the names of the jobs that wait for it.
    """

    absent: tuple[str, ...]
    drivers: tuple[str, ...]
    waits: Mapping[str, tuple[str, ...]]

    @property
    def command(self) -> str:
        """The one command that installs all that pip can install; empty if nothing is to be installed."""
        extras = sorted({distribution.extra_with(name) or "cpu" for name in self.absent})
        if "cpu" in extras and "onnx" in extras:
            extras.remove("onnx")  # the extra `cpu` has all packages of the extra `onnx`
        ours = [f"'{distribution.NAME}[{','.join(extras)}]'"] if extras else []
        every = [*ours, *self.drivers]
        return f"pip install {' '.join(every)}" if every else ""


def of(jobs: Iterable[Job]) -> Lacks:
    """Return what this machine lacks for the jobs.

    A package that drives a GPU is only missing where the GPU is: elsewhere the job waits, whatever is installed.
    """
    absent: dict[str, None] = {}
    drivers: dict[str, None] = {}
    waits: dict[str, dict[str, None]] = {}
    for job in jobs:
        hardware = job.step.hardware()
        drives = "" if hardware is None else hardware.tool
        names = (name for name in job.step.tools_used() if name != drives)
        absent |= dict.fromkeys(name for name in names if tools.version_of(name) == tools.MISSING)
        if hardware is None:
            continue
        lack = lacking.lack(hardware)
        missing = dict.fromkeys(_missing(hardware)) if lack is None or lack.has_gpu else {}
        drivers |= missing
        if lack is not None and not missing:
            waits.setdefault(f"{hardware}: {lack.advice}", {})[job.name] = None
    return Lacks(tuple(absent), tuple(drivers), {why: tuple(names) for why, names in waits.items()})


def _missing(hardware: Hardware) -> Iterator[str]:
    """Yield a requirement for each package that drives the GPU and is missing here, or has another version."""
    version = tools.version_of(hardware.tool)
    if version == tools.MISSING or not agrees(hardware.version or "", version):
        yield requirement(hardware.tool, hardware.version)
    yield from gpu_runtimes.modules_missing(hardware.tool)
