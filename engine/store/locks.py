"""Locks between builders: held by an open file, freed by the kernel when the holder dies."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL}
"""What a file system without locks answers."""


class Lock:
    """A lock, held until `release` or until this process ends, however it ends."""

    def __init__(self, handle: int, path: str | None = None) -> None:
        self._handle = handle
        self._path = path

    def release(self) -> None:
        """Let others have it, and leave no file behind where nobody else can be waiting on it."""
        if self._path is not None:
            with contextlib.suppress(OSError):
                os.unlink(self._path)
        os.close(self._handle)


def take(path: Path | str) -> Lock | None:
    """Take the lock called `path` for oneself, or return None while another holds it. Raises OSError.

    The file goes when the lock is released: a holder makes sure that what it locked is still the file of that name.
    Where the file system has no locks, everybody gets it: `work` tells beforehand.
    """
    name = str(path)
    while True:
        handle = os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            if not _lock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB):
                os.close(handle)
                return None
            if _is_named(handle, name):
                return Lock(handle, name)
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


@contextlib.contextmanager
def held(path: Path | str, *, shared: bool = False, wait: bool = True) -> Iterator[None]:
    """Hold the lock called `path`; its file stays. Raises OSError; BlockingIOError where waiting is not wanted."""
    with _holding(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644), path, shared=shared, wait=wait):
        yield


@contextlib.contextmanager
def held_folder(folder: Path | str) -> Iterator[None]:
    """Hold the lock that a folder itself is, where no file can be made to be locked. Raises OSError."""
    with _holding(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC), folder, shared=False, wait=True):
        yield


@contextlib.contextmanager
def _holding(handle: int, path: Path | str, *, shared: bool, wait: bool) -> Iterator[None]:
    try:
        how = (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB)
        if not _lock(handle, how):
            raise BlockingIOError(errno.EWOULDBLOCK, "held by another", str(path))
        yield
    finally:
        os.close(handle)


def is_held(path: Path | str) -> bool:
    """Say whether somebody holds the lock of this file; False where the file is gone. Raises OSError."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        return not _lock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.close(handle)


def work(folder: Path) -> bool:
    """Say whether locks exclude anybody on the file system of `folder`. Raises OSError."""
    path = folder / f"trial-{os.getpid()}"
    handles = [os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644) for _ in range(2)]
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


def _lock(handle: int, how: int) -> bool:
    """Lock an open file; False while another holds it. Where there are no locks, it is as if nobody did."""
    try:
        fcntl.flock(handle, how)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
    return True


def _is_named(handle: int, name: str) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.stat(name))
    except FileNotFoundError:
        return False
