"""Needs: what this machine lacks to run the jobs of recipes, and the one command that installs it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.builder import lacking
from engine.machine import tools
from engine.runtimes import gpu_runtimes
from engine.text import distribution

if TYPE_CHECKING:
    from engine.builder.job import Job


@dataclass(frozen=True)
class Lacks:
    """What this machine lacks for some jobs.

    `absent` has the names of Python packages that an extra of this project installs, `drivers` the requirements for pip
    of packages that drive a GPU of this machine, and `in_the_way` the names of distributions that pip has to remove
    before. `waits` maps a sentence, which says what else is lacking and what to do, to the names of the jobs that wait.
    """

    absent: tuple[str, ...]
    drivers: tuple[str, ...]
    in_the_way: tuple[str, ...]
    waits: Mapping[str, tuple[str, ...]]

    @property
    def command(self) -> str:
        """The one command that installs all that pip can install; empty if nothing is to be installed."""
        extras = sorted({distribution.extra_with(name) or "cpu" for name in self.absent})
        if "cpu" in extras and "onnx" in extras:
            extras.remove("onnx")  # the extra `cpu` has all packages of the extra `onnx`
        ours = [f"'{distribution.NAME}[{','.join(extras)}]'"] if extras else []
        every = [*ours, *self.drivers]
        removed = f"pip uninstall -y {' '.join(self.in_the_way)} && " if self.in_the_way else ""
        return f"{removed}pip install {' '.join(every)}" if every else ""


def of(jobs: Iterable[Job]) -> Lacks:
    """Return what this machine lacks for the jobs.

    A package that drives a GPU is only missing where the GPU is: elsewhere the job waits, whatever is installed.
    """
    absent: dict[str, None] = {}
    drivers: dict[str, None] = {}
    in_the_way: dict[str, None] = {}
    waits: dict[str, dict[str, None]] = {}
    for job in jobs:
        hardware = job.step.hardware()
        drives = () if hardware is None else hardware.tools
        names = (name for name in job.step.tools_used() if name not in drives)
        absent |= dict.fromkeys(name for name in names if tools.version_of(name) == tools.MISSING)
        if hardware is None:
            continue
        lack = lacking.lack(hardware)
        if lack is not None and lack.packages:
            drivers |= dict.fromkeys(lack.packages)
            in_the_way |= dict.fromkeys(filter(None, [lack.in_the_way]))
        elif lack is not None:
            waits.setdefault(f"{hardware}: {lack.advice}", {})[job.name] = None
        if lack is None or lack.has_gpu:
            drivers |= dict.fromkeys(name for tool in hardware.tools for name in gpu_runtimes.modules_missing(tool))
    named = {why: tuple(jobs_waiting) for why, jobs_waiting in waits.items()}
    return Lacks(tuple(absent), tuple(drivers), tuple(in_the_way), named)
