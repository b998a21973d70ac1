"""Processes as the operating system shows them: their children, their threads, their memory, and their end."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time
from collections.abc import Collection
from pathlib import Path

KIB = 1024
"""Bytes in a KiB, the unit of memory sizes in Linux's proc(5) and getrusage(2)."""
_DEATH_SIGNAL, _SUBREAPER = 1, 36
"""Options of Linux's prctl(2)."""
_DEAD = ("Z", "X", "")
"""The states of a process that has ended."""
_ROUNDS = 200
_ROUND_SECONDS = 0.005


def _control(option: int, value: int) -> None:
    """Call Linux's prctl(2)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def adopt_orphans() -> None:
    """Become the parent of each descendant that loses its own parent, also of one in a session of its own (Linux)."""
    _control(_SUBREAPER, 1)


def die_with_parent() -> None:
    """Let the kernel kill this process when its parent dies (Linux)."""
    _control(_DEATH_SIGNAL, int(signal.SIGKILL))


def threads() -> int:
    """Return the number of threads of this process, those of native code included; 1 where the system does not tell."""
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return 1


def children(pid: int | str) -> list[int]:
    """Return the living children of a process."""
    pids: list[int] = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError):
                pids += map(int, Path(f"/proc/{pid}/task/{thread}/children").read_text().split())
    return [child for child in pids if state_of(child) not in _DEAD]


def state_of(pid: int) -> str:
    """Return the letter of a process's state, as in proc(5): "T" for a stopped process; "" for no process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return ""


def descendants(pid: int, *, spare: Collection[int] = ()) -> list[int]:
    """Return all living descendants of a process, without the processes `spare` and their descendants."""
    own = [child for child in children(pid) if child not in spare]
    return [*own, *(deeper for each in own for deeper in descendants(each))]


def end_descendants(pid: int, *, spare: Collection[int] = ()) -> None:
    """Kill all descendants of a process that adopts orphans, until none is alive."""
    for _ in range(_ROUNDS):
        doomed = descendants(pid, spare=spare)
        if not doomed:
            return
        for each in doomed:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(each, signal.SIGKILL)
        time.sleep(_ROUND_SECONDS)


def end(pid: int) -> None:
    """Kill a process that adopts orphans, and all its descendants before it."""
    end_descendants(pid)
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(pid, signal.SIGKILL)


def anonymous_of(pid: int) -> int:
    """Return a process's resident memory without the pages of mapped files, in bytes; 0 where the system does not tell.

    The system keeps no peak of this number.
    """
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) * KIB for line in status.splitlines() if line.startswith("RssAnon:")), 0)
