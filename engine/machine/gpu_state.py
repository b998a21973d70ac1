"""The state of a GPU during a measurement: the clocks, and whether the clocks stayed constant."""

# Fields: `nvidia-smi --help-query-gpu`.

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_FIELDS = ("name", "driver_version", "clocks.current.sm", "clocks.max.sm", "clocks.current.memory", "temperature.gpu")
_SECONDS = 20

Range = tuple[int, int]
"""The pair of the least and the greatest of several values that nvidia-smi reported."""


@dataclass(frozen=True, kw_only=True)
class GpuReport:
    """The state of a GPU during a measurement.

    NVIDIA's tools can lock the clocks (`nvidia-smi --lock-gpu-clocks`) but do not show whether they are locked.
    `steady` says whether the clocks of the GPU were the same after every single measurement.
    """

    name: str
    driver: str | None = None
    sm_mhz: Range | None = None
    memory_mhz: Range | None = None
    celsius: Range | None = None
    max_sm_mhz: int | None = None
    steady: bool | None = None


def query(fields: Sequence[str] = _FIELDS) -> list[dict[str, str]]:
    """Return the fields of every GPU that nvidia-smi lists; [] where nvidia-smi is missing or fails."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    try:
        answer = subprocess.run(  # noqa: S603 - a fixed command line, found on the PATH
            [program, f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"],
            capture_output=True, text=True, timeout=_SECONDS, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return []
    rows = [[cell.strip() for cell in line.split(",")] for line in answer.stdout.splitlines()]
    return [dict(zip(fields, row, strict=True)) for row in rows if len(row) == len(fields)]


def look(name: str) -> list[dict[str, str]]:
    """Return a list with the present state of the first GPU called `name`; [] if nvidia-smi does not list the GPU."""
    return [state for state in query() if state["name"] == name][:1]


def report(name: str, states: Sequence[Mapping[str, str]]) -> GpuReport:
    """Return a report that sums up several states of a GPU; a field that no state has is None."""
    clocks = _range(states, "clocks.current.sm")
    limits = [int(state["clocks.max.sm"]) for state in states if state["clocks.max.sm"].isdigit()]
    return GpuReport(
        name=name,
        driver=states[0]["driver_version"] if states else None,
        sm_mhz=clocks,
        memory_mhz=_range(states, "clocks.current.memory"),
        celsius=_range(states, "temperature.gpu"),
        max_sm_mhz=limits[0] if limits else None,
        steady=clocks[0] == clocks[1] if len(states) > 1 and clocks else None,
    )


def _range(states: Sequence[Mapping[str, str]], field: str) -> Range | None:
    numbers = [int(state[field]) for state in states if state[field].isdigit()]
    return (min(numbers), max(numbers)) if numbers else None
