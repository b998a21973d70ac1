"""What a GPU does while something is measured on it: its clocks, and whether they held still."""

# Fields: `nvidia-smi --help-query-gpu`.

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

_FIELDS = ("name", "driver_version", "clocks.current.sm", "clocks.max.sm", "clocks.current.memory", "temperature.gpu")
_RANGES = {"sm_mhz": "clocks.current.sm", "memory_mhz": "clocks.current.memory", "celsius": "temperature.gpu"}
_SECONDS = 20


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


def report(seen: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """Return {"driver", "sm_mhz": [least, greatest], "max_sm_mhz", "memory_mhz", "celsius", "steady"} of several looks.

    What cannot be told is left out. NVIDIA's tools lock clocks (`nvidia-smi --lock-gpu-clocks`) but do not tell
    whether they are locked: `steady` says that they were the same at every look, each right after a measurement.
    """
    told: dict[str, Any] = {"driver": seen[0]["driver_version"]} if seen else {}
    for key, field in _RANGES.items():
        numbers = [int(state[field]) for state in seen if state[field].isdigit()]
        if numbers:
            told[key] = [min(numbers), max(numbers)]
    limits = [int(state["clocks.max.sm"]) for state in seen if state["clocks.max.sm"].isdigit()]
    if limits:
        told["max_sm_mhz"] = limits[0]
    if len(seen) > 1 and "sm_mhz" in told:
        told["steady"] = told["sm_mhz"][0] == told["sm_mhz"][1]
    return told
