"""What a GPU does while something is measured on it: its clocks, and whether they held still."""

# Fields: `nvidia-smi --help-query-gpu`.

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_FIELDS = ("name", "driver_version", "clocks.current.sm", "clocks.max.sm", "clocks.current.memory", "temperature.gpu")
_SECONDS = 20

Range = tuple[int, int]
"""The least and the greatest of several looks."""


@dataclass(frozen=True, kw_only=True)
class GpuReport:
    """What a GPU did while something was measured on it.

    NVIDIA's tools lock clocks (`nvidia-smi --lock-gpu-clocks`) but do not tell whether they are locked: `steady` says
    that they were the same at every look, each right after a measurement.
    """

    name: str
    driver: str | None = None
    sm_mhz: Range | None = None
    memory_mhz: Range | None = None
    celsius: Range | None = None
    max_sm_mhz: int | None = None
    steady: bool | None = None


def query(fields: Sequence[str] = _FIELDS) -> list[dict[str, str]]:
    """Return the fields of every GPU that nvidia-smi lists; nothing where it is not there or does not answer."""
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
    """Return how the first GPU of this name is now; nothing where nobody tells."""
    return [state for state in query() if state["name"] == name][:1]


def report(name: str, seen: Sequence[Mapping[str, str]]) -> GpuReport:
    """Return what several looks at a GPU told; what they did not tell is None."""
    clocks = _range(seen, "clocks.current.sm")
    limits = [int(state["clocks.max.sm"]) for state in seen if state["clocks.max.sm"].isdigit()]
    return GpuReport(
        name=name,
        driver=seen[0]["driver_version"] if seen else None,
        sm_mhz=clocks,
        memory_mhz=_range(seen, "clocks.current.memory"),
        celsius=_range(seen, "temperature.gpu"),
        max_sm_mhz=limits[0] if limits else None,
        steady=clocks[0] == clocks[1] if len(seen) > 1 and clocks else None,
    )


def _range(seen: Sequence[Mapping[str, str]], field: str) -> Range | None:
    numbers = [int(state[field]) for state in seen if state[field].isdigit()]
    return (min(numbers), max(numbers)) if numbers else None
