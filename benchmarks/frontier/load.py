"""Load: the share of the machine that other processes used while something was measured."""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path
from types import TracebackType
from typing import Self

ALLOWED = 0.05
"""Cores that other processes may use on average; the system's own processes need about 0.01."""


class Watch:
    """A context manager. Behind it, `others` is the number of cores that other processes used on average.

    This process and those whose numbers are given are no others.

    Time that the host of a virtual machine gave to other machines (steal) counts as used by others.
    """

    others = 0.0

    def __init__(self, *mine: int) -> None:
        self._mine = mine

    def __enter__(self) -> Self:
        self._before = self._now()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        busy, mine, wall = (now - before for now, before in zip(self._now(), self._before, strict=True))
        self.others = max(0.0, busy - mine) / max(wall, 1e-9)

    def _now(self) -> tuple[float, float, float]:
        """Return the seconds of all CPUs that were not idle, those of this process, and the clock's."""
        fields = Path("/proc/stat").read_text().splitlines()[0].split()[1:]
        user, nice, system, _, _, irq, soft, steal = map(int, fields[:8])
        busy = (user + nice + system + irq + soft + steal) / os.sysconf("SC_CLK_TCK")
        usage = resource.getrusage(resource.RUSAGE_SELF)
        mine = usage.ru_utime + usage.ru_stime + sum(map(_seconds, self._mine))
        return busy, mine, time.perf_counter()


def _seconds(process: int) -> float:
    """Return the CPU seconds of another process; zero once it has ended."""
    try:
        words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return 0.0
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
