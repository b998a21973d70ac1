"""Traps in a builder or a worker: killed, or out of space, at the n-th touch of the store; other clocks, no locks."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

_TOUCHES = {
    "open", "os.rename", "os.link", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "os.utime", "os.scandir",
    "os.listdir", "os.truncate", "fcntl.flock", "subprocess.Popen",
}  # fmt: skip


def lay(text: str) -> None:
    """Lay the traps that a JSON object names; `below` are the folders that count."""
    options = json.loads(text)
    if "count_into" in options:
        _at_touch(0, options["below"], _Count(options["count_into"]))
    if "kill_at" in options:
        _at_touch(options["kill_at"], options["below"], lambda: _kill(with_workers=options.get("with_workers", False)))
    if "edit_at" in options:
        _at_touch(options["edit_at"], options["below"], lambda: _edit(options["path"], options["text"]))
    if "full_from" in options:
        _from_write(options["full_from"], options["below"], getattr(errno, options.get("errno", "ENOSPC")))
    if "clock" in options:
        _turn_clock(options["clock"])
    if options.get("locks") is False:
        _take_locks_away()


class _Count:
    """Keeps in a file how often it was called."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
        self._count = 0

    def __call__(self) -> None:
        self._count += 1
        os.pwrite(self._file, str(self._count).encode(), 0)


def _kill(*, with_workers: bool) -> None:
    workers = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split() if with_workers else []
    for pid in (*map(int, workers), os.getpid()):
        os.kill(pid, signal.SIGKILL)


def _at_touch(number: int, below: list[str], act: Any) -> None:
    """Act right before the n-th system call that names a file below these folders, or locks, writes or flushes.

    Before each of them where the number is 0.
    """
    left = number

    def touch() -> None:
        nonlocal left
        left -= 1
        if left == 0 or number == 0:
            act()

    def audit(event: str, arguments: tuple[Any, ...]) -> None:
        if event in _TOUCHES and _concerns(event, arguments, below):
            touch()

    sys.addaudithook(audit)
    # These are not audited.
    for name in ("write", "fsync"):
        setattr(os, name, _before(getattr(os, name), touch))


def _edit(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def _concerns(event: str, arguments: tuple[Any, ...], below: list[str]) -> bool:
    if event in ("fcntl.flock", "subprocess.Popen"):
        return True
    # A number is an open folder: only the store's and the packages' are walked that way.
    return any(
        isinstance(value, (str, bytes)) and os.fsdecode(value).startswith(tuple(below)) for value in arguments
    ) or (event in ("os.remove", "os.rmdir") and arguments[-1] != -1)


def _before(function: Any, act: Any) -> Any:
    def wrapped(*arguments: Any, **named: Any) -> Any:
        act()
        return function(*arguments, **named)

    return wrapped


def _from_write(number: int, below: list[str], code: int) -> None:
    """From the n-th call on that needs room below these folders, let the disk be full, or a quota be used up."""
    left = number
    needing = ("os.rename", "os.link", "os.mkdir")

    def refuse(path: object) -> None:
        nonlocal left
        left -= 1
        if left <= 0:
            raise OSError(code, os.strerror(code), path)

    def audit(event: str, arguments: tuple[Any, ...]) -> None:
        creates = event == "open" and isinstance(arguments[2], int) and arguments[2] & os.O_CREAT
        if (creates or event in needing) and isinstance(arguments[0], (str, bytes)):
            name = os.fsdecode(arguments[0])
            if name.startswith(tuple(below)):
                refuse(name)

    sys.addaudithook(audit)
    os.write = _before(os.write, lambda: refuse(None))
    os.fsync = _before(os.fsync, lambda: refuse(None))


def _turn_clock(seconds: float) -> None:
    """Let the clock on the wall be off by so much; files get their times from the kernel all the same."""
    now, now_ns = time.time, time.time_ns
    time.time = lambda: now() + seconds
    time.time_ns = lambda: now_ns() + int(seconds * 1e9)


def _take_locks_away() -> None:
    """Let it be a file system without locks."""

    def flock(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    fcntl.flock = flock
