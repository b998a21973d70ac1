"""The holder of a lock: a line in the lock file that tells others which process holds the lock, and since when."""

from __future__ import annotations

import contextlib
import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from engine.system import processes, regular

_LINE = 4096
"""The greatest length of the line in bytes."""


@dataclass(frozen=True)
class Holder:
    """A process that holds a lock."""

    pid: int
    host: str
    space: str
    """The process namespace: a container has its own, in which process numbers mean other processes."""
    since: float
    """The time at which the process took the lock, in seconds since the epoch."""
    task: str
    """What the process does meanwhile, for example the name of a job."""

    def is_here(self) -> bool:
        """Say whether the process number means a process of this machine and container."""
        return (self.host, self.space) == (_host(), _space())

    def is_gone(self) -> bool:
        """Say whether the process has ended; False for a process of another machine or container."""
        if not self.is_here():
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except OSError:
            return False
        return False

    def is_stopped(self) -> bool:
        """Say whether the process stands still, for example after Ctrl-Z."""
        return self.is_here() and processes.state_of(self.pid) in ("T", "t")

    def __str__(self) -> str:
        began = time.strftime("%H:%M:%S", time.localtime(self.since))
        text = f"process {self.pid} on {self.host} ({self.task}, since {began})"
        if self.is_gone():
            return f"{text}, which has ended: a process that it started, or a file server, still holds the lock"
        return f"{text}, which stands still: continue it with `kill -CONT {self.pid}`" if self.is_stopped() else text


def sign(handle: int, task: str) -> None:
    """Write into an open, locked file that this process holds the lock; do nothing where that is not possible."""
    signature = Holder(os.getpid(), _host(), _space(), round(time.time(), 3), task)
    with contextlib.suppress(OSError):
        os.ftruncate(handle, 0)
        os.pwrite(handle, json.dumps(asdict(signature)).encode(), 0)


def holder_of(path: Path | str) -> Holder | None:
    """Return the holder that has signed a lock file last; None for a lock file that nobody has signed."""
    try:
        with regular.open_file(path) as file:
            return Holder(**json.loads(file.read(_LINE) or b""))
    except (OSError, ValueError, TypeError):
        return None


def _host() -> str:
    return os.uname().nodename


def _space() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""
