"""Regular files: opened so that a named pipe, a socket or a device is an error at once, and is never waited for."""

# An up-to-date build imports this module, so the module imports only what Python has loaded already.

from __future__ import annotations

import errno
import io
import os
import stat

_FOLDER = "a directory"
_PIECE = 1 << 20
"""Bytes that are read at a time from a file that grows meanwhile."""
# Without O_NONBLOCK, opening a pipe that has no writer would wait for ever.
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_KINDS = (
    (stat.S_ISDIR, _FOLDER),
    (stat.S_ISFIFO, "a named pipe, no regular file"),
    (stat.S_ISSOCK, "a socket, no regular file"),
    (stat.S_ISCHR, "a device, no regular file"),
    (stat.S_ISBLK, "a device, no regular file"),
)


class NotRegularError(OSError):
    """A path leads to a directory, a named pipe, a socket or a device, where a regular file is expected."""

    def __init__(self, kind: str, path: str | os.PathLike[str]) -> None:
        is_folder = kind == _FOLDER
        reason = os.strerror(errno.EISDIR) if is_folder else f"it is {kind}"
        super().__init__(errno.EISDIR if is_folder else errno.EINVAL, reason, os.fspath(path))
        self.kind = kind


def open_file(path: str | os.PathLike[str]) -> io.FileIO:
    """Open a regular file for reading, without a buffer. Raises OSError, and NotRegularError for anything else."""
    handle = os.open(path, _FLAGS)
    try:
        _refuse(os.fstat(handle).st_mode, path)
        return io.FileIO(handle)
    except BaseException:
        os.close(handle)
        raise


def _refuse(mode: int, path: str | os.PathLike[str]) -> None:
    if not stat.S_ISREG(mode):
        raise NotRegularError(next((kind for test, kind in _KINDS if test(mode)), "no regular file"), path)


def read(path: str | os.PathLike[str]) -> bytes:
    """Return the content of a regular file. Raises OSError."""
    return read_with_status(path)[0]


def read_with_status(path: str | os.PathLike[str]) -> tuple[bytes, os.stat_result]:
    """Return the content of a regular file, and its status from before it was read. Raises OSError."""
    handle = os.open(path, _FLAGS)
    try:
        status = os.fstat(handle)
        _refuse(status.st_mode, path)
        pieces = [os.read(handle, status.st_size + 1)]
        if len(pieces[0]) != status.st_size:
            while pieces[-1]:
                pieces.append(os.read(handle, _PIECE))
        return b"".join(pieces), status
    finally:
        os.close(handle)


def read_text(path: str | os.PathLike[str], *, errors: str = "strict") -> str:
    """Return the content of a regular file in UTF-8 as text. Raises OSError and UnicodeDecodeError."""
    return str(read(path), "utf-8", errors)
