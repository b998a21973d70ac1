"""The state of a GPU during a measurement: clocks, power, and what held the clocks back."""

# NVML tells it of the very GPU that is measured, which its UUID names. Without NVML, nvidia-smi tells less. Fields:
# `nvidia-smi --help-query-gpu`.

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from engine.machine import nvml
from engine.machine.nvml import BoardState

_FIELDS = ("name", "driver_version", "clocks.current.sm", "clocks.max.sm", "clocks.current.memory", "temperature.gpu")
_SECONDS = 20

Range = tuple[int, int]
"""The pair of the least and the greatest of several values that NVML or nvidia-smi reported."""


@dataclass(frozen=True, kw_only=True)
class GpuReport:
    """The state of a GPU during a measurement.

    NVIDIA's tools can lock the clocks (`nvidia-smi --lock-gpu-clocks`) but do not show whether they are locked.
    `steady` says whether the clocks of the GPU were the same after every single measurement. `throttled` has the
    reasons that held the clocks back after any of them; None without NVML. For a MIG slice, all numbers are those of
    its board.
    """

    name: str
    driver: str | None = None
    sm_mhz: Range | None = None
    memory_mhz: Range | None = None
    celsius: Range | None = None
    max_sm_mhz: int | None = None
    steady: bool | None = None
    watts: Range | None = None
    watt_limit: int | None = None
    throttled: tuple[str, ...] | None = None

    @property
    def clocks_in_words(self) -> str:
        """The clocks as text behind the name of the GPU: " at 1590 MHz", with the reasons that held them back."""
        if self.sm_mhz is None:
            return ", its clocks not known"
        least, greatest = self.sm_mhz
        throttling = f", held back: {', '.join(self.throttled)}" if self.throttled else ""
        clocks = f"{least} MHz" if self.steady else f"{least} to {greatest} MHz"
        return f" at {clocks}{throttling}"


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


def look(name: str, uuid: str = "") -> list[BoardState]:
    """Return a list with the present state of the GPU with a UUID; [] where nobody tells it.

    Without NVML, nvidia-smi tells the state of the GPU called `name`, if only one GPU has this name.
    """
    state = nvml.state(uuid)
    if state is not None:
        return [state]
    named = [row for row in query() if row["name"] == name]
    return [_state(row) for row in named] if len(named) == 1 else []


def _state(row: Mapping[str, str]) -> BoardState:
    """Return the state of a board from a row of nvidia-smi, which writes "[N/A]" for what it does not know."""
    _, driver, *cells = (row[field] for field in _FIELDS)
    sm, most, memory, celsius = (int(cell) if cell.isdigit() else None for cell in cells)
    return BoardState(driver=driver, sm_mhz=sm, max_sm_mhz=most, memory_mhz=memory, celsius=celsius)


def report(name: str, states: Sequence[BoardState]) -> GpuReport:
    """Return a report that sums up several states of a GPU; a field that no state has is None."""
    clocks = _range(state.sm_mhz for state in states)
    reasons = [state.throttled for state in states if state.throttled is not None]
    return GpuReport(
        name=name,
        driver=states[0].driver if states else None,
        sm_mhz=clocks,
        memory_mhz=_range(state.memory_mhz for state in states),
        celsius=_range(state.celsius for state in states),
        max_sm_mhz=next((state.max_sm_mhz for state in states if state.max_sm_mhz is not None), None),
        steady=clocks[0] == clocks[1] if len(states) > 1 and clocks else None,
        watts=_range(state.watts for state in states),
        watt_limit=next((state.watt_limit for state in states if state.watt_limit is not None), None),
        throttled=tuple(dict.fromkeys(chain.from_iterable(reasons))) if reasons else None,
    )


def _range(numbers: Iterable[int | None]) -> Range | None:
    known = [number for number in numbers if number is not None]
    return (min(known), max(known)) if known else None
