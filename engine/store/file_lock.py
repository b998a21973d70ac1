"""File locks between processes: held by an open file, freed by the kernel when the holder dies, and signed by it."""

# On a file system without locks every process gets every lock. `are_supported` tells whether locks keep others out.

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from engine.system import processes, regular

PATIENCE = 1.0
"""The seconds of a wait for a lock after which the wait is announced."""
_POLL_SECONDS = 0.01
_listeners: list[Callable[[str], None]] = []
_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL}
"""The errors with which flock(2) answers on a file system without locks."""
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
        try:
            if self.is_here():
                os.kill(self.pid, 0)
        except OSError as error:
            return isinstance(error, ProcessLookupError)
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


class FileLock:
    """A file lock that is held until `release`, or until no process has the file open any more, even after a crash."""

    def __init__(self, handle: int, path: str) -> None:
        """`handle` is the descriptor of the open, locked file at `path`."""
        self.handle = handle
        self._path = path

    def release(self) -> None:
        """Remove the locked file, and close it, which frees the lock."""
        with contextlib.suppress(OSError):
            os.unlink(self._path)
        os.close(self.handle)


def take(path: Path | str, *, task: str = "") -> FileLock:
    """Take the lock of the file at `path`, as `try_take` does, but wait for it as `hold` does. Raises OSError.

    Without a task, nothing is written into the file.
    """
    while (lock := try_take(path, task=task)) is None:
        with hold(path, task=task):
            pass  # the other process has released the lock
    return lock


def try_take(path: Path | str, *, task: str = "a job") -> FileLock | None:
    """Take the lock of the file at `path`, or return None while another process holds it. Raises OSError.

    `task` says what this process does meanwhile; `holder_of` reads it. `release` removes the lock file, so the path is
    opened again where the locked file has no name any more.
    """
    name = str(path)
    while True:
        handle = _open(name)
        try:
            if not _lock(handle, wait=False):
                os.close(handle)
                return None
            if _is_named(handle, name):
                _sign(handle, task)
                return FileLock(handle, name)
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


@contextlib.contextmanager
def hold(path: Path | str, *, shared: bool = False, wait: bool = True, task: str = "writing") -> Iterator[None]:
    """Hold the lock of a file or folder inside the `with` block; a missing file is made, and is not removed.

    Several processes can hold a `shared` lock. Raises OSError. With `wait=False` raises BlockingIOError while another
    process holds the lock. A wait of more than a second is announced (`announcing`).
    """
    handle = _open(path)
    try:
        if not _lock(handle, shared=shared, wait=False):
            if not wait:
                raise BlockingIOError(errno.EWOULDBLOCK, "held by another", str(path))
            _wait(handle, path, shared=shared)
        if not shared:
            _sign(handle, task)
        yield
    finally:
        os.close(handle)


@contextlib.contextmanager
def announcing(tell: Callable[[str], None]) -> Iterator[None]:
    """Call `tell` with a text, inside the `with` block, whenever this process waits for a lock for long."""
    _listeners.append(tell)
    try:
        yield
    finally:
        _listeners.remove(tell)


def _wait(handle: int, path: Path | str, *, shared: bool) -> None:
    """Wait for a lock; after `PATIENCE` seconds, announce which process holds the lock."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        time.sleep(_POLL_SECONDS)
        if _lock(handle, shared=shared, wait=False):
            return
    # Processes that share a lock do not sign it.
    is_shared = not shared and _lock(handle, shared=True, wait=False)
    other = None if is_shared else holder_of(path)
    for tell in _listeners:
        tell(f"waiting for {'running builds' if other is None else other}, to lock {path}")
    _lock(handle, shared=shared)


def is_locked(path: Path | str) -> bool:
    """Say whether a process holds the lock of a file or folder; False for a missing file. Raises OSError."""
    try:
        handle = _open(path, flags=0)
    except FileNotFoundError:
        return False
    try:
        return not _lock(handle, wait=False)
    finally:
        os.close(handle)


def are_supported(folder: Path) -> bool:
    """Say whether file locks work on the file system of `folder`, by a trial with a file. Raises OSError."""
    path = folder / f"trial-{os.getpid()}"
    handles = [_open(path) for _ in range(2)]
    try:
        fcntl.flock(handles[0], fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.flock(handles[1], fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
    finally:
        for handle in handles:
            os.close(handle)
        with contextlib.suppress(OSError):
            os.unlink(path)
    return False


def _open(path: Path | str, flags: int = os.O_CREAT) -> int:
    """Open a file for writing, because NFS locks no other files; open a folder for reading. Raises OSError."""
    try:
        return os.open(path, os.O_RDWR | flags | os.O_CLOEXEC, 0o644)
    except IsADirectoryError:
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def _lock(handle: int, *, shared: bool = False, wait: bool = True) -> bool:
    """Lock an open file, as far as its file system has locks; return False while another process holds the lock."""
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    try:
        fcntl.flock(handle, kind if wait else kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
    return True


def _is_named(handle: int, name: str) -> bool:
    """Say whether the path `name` still leads to the open file."""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(name))
    except FileNotFoundError:
        return False


def _sign(handle: int, task: str) -> None:
    """Write into an open, locked file that this process holds the lock for a task, where that is possible."""
    if not task:
        return
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
