"""What waits for other hardware: as a matrix for CI, and as text."""

from __future__ import annotations

import json
from collections.abc import Sequence

from engine.builder.waiting import MachineNeeded, WaitingJob
from engine.report import costs, grid
from engine.text import durations, lists

_MINUTE = 60.0
_STATES = {"stale": "would build", "new": "would build", "unknown": "may build"}


def line(waiting: Sequence[MachineNeeded]) -> str:
    """Return the matrix as one line of JSON, which GitHub Actions takes as `matrix: ${{ fromJSON(...) }}`."""
    return json.dumps({"include": [_entry(each) for each in waiting]}, ensure_ascii=False)


def text(waiting: Sequence[MachineNeeded]) -> str:
    """Return for each kind of machine its jobs, what they cost, and the command to run there."""
    if not waiting:
        return "nothing waits for other hardware\n"
    return "".join(f"{each}\n" for entry in waiting for each in _lines(entry))


def _entry(each: MachineNeeded) -> dict[str, object]:
    hardware = each.hardware
    first = hardware.devices[0]
    return {
        "device": first.name,
        "sm": first.sm,
        "devices": [{"device": device.name, "sm": device.sm} for device in hardware.devices],
        "tool": hardware.tool,
        "version": hardware.version,
        "requirement": each.requirement,
        "minutes": _minutes(each.seconds),
        "command": each.command,
        "jobs": [_job(job) for job in each.jobs],
    }


def _job(job: WaitingJob) -> dict[str, object]:
    return {
        "recipe": str(job.path),
        "variant": job.finding.job.recipe,
        "step": job.finding.job.name,
        "state": _STATES[job.finding.state],
        "minutes": _minutes(job.seconds),
    }


def _minutes(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds / _MINUTE, 4)


def _lines(entry: MachineNeeded) -> list[str]:
    cost = "cost unknown" if entry.seconds is None else durations.estimate(entry.seconds)
    jobs = [
        (_STATES[job.finding.state], job.finding.job.recipe, job.finding.job.name, costs.of_job(job.finding))
        for job in entry.jobs
    ]
    return [
        f"{entry.hardware}: {lists.counted(len(entry.jobs), 'job')}, {cost}",
        *grid.lines(jobs, indent=2),
        f"  there: {entry.command}",
    ]
