"""Copy the content of files, or link files where the file system can."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from pathlib import Path

from engine.errors import StepError
from engine.system import limits, regular

_CLONE = 0x40049409
"""FICLONE of linux/fs.h: make a file share the blocks of another, copy-on-write."""
MODE = 0o644
"""The mode of copied files: the owner may write them, and everybody may read them."""
_CHUNK = 1 << 20
"""The number of bytes that `copy` reads and writes at a time."""


def copy(source: Path, target: Path) -> None:
    """Copy a file's content to `target`, without mode and times; share blocks where possible. Raises StepError."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with regular.open_file(source) as reader, target.open("wb") as writer:
            if not _cloned(reader.fileno(), writer.fileno()):
                shutil.copyfileobj(reader, writer, _CHUNK)
        target.chmod(MODE)
    except OSError as error:
        limit = limits.reached(error)
        raise StepError(
            f"{source.name} could not be copied",
            [f"{error.strerror}: {error.filename or target}"],
            "" if limit is None else limit.hint,
        ) from error


def link_or_copy(source: Path, target: Path) -> None:
    """Make a hard link to a file, or a copy with the file's mode and times where the file system has no hard links."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _cloned(reader: int, writer: int) -> bool:
    if sys.platform == "linux":
        import fcntl

        with contextlib.suppress(OSError):
            fcntl.ioctl(writer, _CLONE, reader)
            return True
    return False
