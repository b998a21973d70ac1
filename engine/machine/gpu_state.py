"""The state of a GPU during a measurement: clocks, power, and what held the clocks back."""

# NVML tells it of the very GPU that is measured, which its UUID names. Without NVML, nvidia-smi tells less.

# Fields: `nvidia-smi --help-query-gpu`.

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engine.machine import nvml

_FIELDS = ("name", "driver_version", "clocks.current.sm", "clocks.max.sm", "clocks.current.memory", "temperature.gpu")
_SECONDS = 20

_WATTS, _WATT_LIMIT, _THROTTLED = "power.draw", "enforced.power.limit", "clocks_event_reasons.active"
_SEPARATOR = "; "

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


def look(name: str, uuid: str = "") -> list[dict[str, str]]:
    """Return a list with the present state of the GPU with a UUID; [] where nobody tells it.

    Without NVML, nvidia-smi tells the state of the GPU called `name`, if only one GPU has this name.
    """
    state = nvml.state(uuid)
    if state is not None:
        fields = {**dict(zip(_FIELDS, _cells(name, state), strict=True)), _WATTS: _cell(state.watts)}
        fields[_WATT_LIMIT] = _cell(state.watt_limit)
        return [fields if state.throttled is None else {**fields, _THROTTLED: _SEPARATOR.join(state.throttled)}]
    named = [state for state in query() if state["name"] == name]
    return named if len(named) == 1 else []


def _cells(name: str, state: nvml.BoardState) -> tuple[str, ...]:
    numbers = (state.sm_mhz, state.max_sm_mhz, state.memory_mhz, state.celsius)
    return (name, nvml.driver() or "", *(_cell(number) for number in numbers))


def _cell(number: float | None) -> str:
    return "" if number is None else str(round(number))


def report(name: str, states: Sequence[Mapping[str, str]]) -> GpuReport:
    """Return a report that sums up several states of a GPU; a field that no state has is None."""
    clocks = _range(states, "clocks.current.sm")
    limits = [int(state["clocks.max.sm"]) for state in states if state["clocks.max.sm"].isdigit()]
    reasons = [reason for state in states for reason in state.get(_THROTTLED, "").split(_SEPARATOR) if reason]
    return GpuReport(
        name=name,
        driver=states[0]["driver_version"] if states else None,
        sm_mhz=clocks,
        memory_mhz=_range(states, "clocks.current.memory"),
        celsius=_range(states, "temperature.gpu"),
        max_sm_mhz=limits[0] if limits else None,
        steady=clocks[0] == clocks[1] if len(states) > 1 and clocks else None,
        watts=_range(states, _WATTS),
        watt_limit=next((int(state[_WATT_LIMIT]) for state in states if state.get(_WATT_LIMIT)), None),
        throttled=tuple(dict.fromkeys(reasons)) if any(_THROTTLED in state for state in states) else None,
    )


def _range(states: Sequence[Mapping[str, str]], field: str) -> Range | None:
    numbers = [int(state[field]) for state in states if state.get(field, "").isdigit()]
    return (min(numbers), max(numbers)) if numbers else None
