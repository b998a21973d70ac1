"""Copy, link, replace, flush and remove files, and explain the errors of a full or failing disk."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from engine.errors import StepError, StoreError, UnusableStoreError
from engine.system import limits, regular

_CLONE = 0x40049409
"""FICLONE of linux/fs.h: make a file share the blocks of another, copy-on-write."""
MODE = 0o644
"""The mode of copied files: the owner may write them, and everybody may read them."""
_CHUNK = 1 << 20
"""The number of bytes that `copy` reads and writes at a time."""


@contextlib.contextmanager
def explained(root: Path) -> Iterator[None]:
    """Turn an OSError inside the `with` block into a StoreError with the cause and a hint.

    It is an UnusableStoreError where the user may not write there.
    """
    try:
        yield
    except OSError as error:
        reached = limits.reached(error)
        is_unusable = error.errno in (errno.EROFS, errno.EACCES)
        kind = UnusableStoreError if is_unusable else StoreError
        raise kind(
            f"the store at {root} cannot be used: {error.strerror or error}",
            [f"while touching {error.filename}"] if error.filename else [],
            "name a folder with --cache or RECIPE_CACHE" if reached is None or is_unusable else reached.hint,
        ) from error


def replace(path: Path | str, data: bytes, *, fresh: Path | str, flushed: bool = False) -> None:
    """Replace a file atomically: a reader sees the old or the new content, even if the writer is killed.

    The data is written to `fresh`, a path of this call on the same file system, which is then renamed. With `flushed`
    it is on the disk before that, so that a power cut leaves no half-written file either. Raises OSError.
    """
    try:
        handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(handle, view) :]
            if flushed:
                os.fsync(handle)
        finally:
            os.close(handle)
        os.replace(fresh, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(fresh)
        raise


def flush(path: Path) -> None:
    """Write a file's content, or a folder's entries, from the kernel's cache to the disk. Raises OSError."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def remove(path: Path) -> None:
    """Remove a file, a link, or a folder with all that it holds, also a folder without rights; ignore errors."""
    if path.is_symlink() or not path.is_dir():
        with contextlib.suppress(OSError):
            path.unlink()
        return
    folders = [str(path)]
    for folder in folders:  # grows meanwhile: folders may be nested deeper than calls of Python
        with contextlib.suppress(OSError):
            os.chmod(folder, 0o700)
        folders += _emptied(folder)
    for folder in reversed(folders):
        with contextlib.suppress(OSError):
            os.rmdir(folder)


def _emptied(folder: str) -> list[str]:
    """Remove the files and links of a folder, and return its folders."""
    inner = []
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                inner.append(entry.path)
            else:
                with contextlib.suppress(OSError):
                    os.unlink(entry.path)
    return inner


def entries(folder: Path) -> list[Path]:
    """Return what a folder of the store holds, in order; nothing for a folder that was not needed yet."""
    return sorted(folder.iterdir()) if folder.is_dir() else []


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
