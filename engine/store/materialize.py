"""Copy a package to `build/`: the folder is replaced atomically, and only if its files differ from the artifact."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from engine import digest
from engine.errors import StoreError
from engine.store import file_lock
from engine.store.disk import MODE, copy, entries, remove, replace
from engine.store.record import Record
from engine.store.store import Store
from engine.system import limits, regular

PREVIOUS = ".previous"
"""The name of the folder to which builds move older packages."""
UNFINISHED = ".unfinished"
"""The folder beside packages with a folder for each package that is being written; it exists only while one of them
does."""
_LOCK = "lock"
"""The file in the folder of a package that its builder holds locked."""
_TRIES = 100
"""How often the folder is made for the lock. It is only in vain where other builders end in just these moments."""
_ABOUT_PLACE = {errno.EROFS, errno.EACCES, errno.ENOSPC, errno.EDQUOT}
"""Errors for which another folder helps."""
_FROM_HERE = -100
"""AT_FDCWD of renameat2(2): a relative path starts at the working directory."""
_EXCHANGE = 2
"""RENAME_EXCHANGE of renameat2(2), since Linux 3.15."""
_UNABLE = {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP}
"""The errors with which renameat2(2) answers on a kernel or a file system that cannot exchange."""


def materialize(store: Store, record: Record, target: Path) -> None:
    """Make the folder `target` hold exactly the files of the record's artifact. Raises StoreError.

    A folder that already holds exactly the artifact's files is not touched. Builders that write the same folder take
    turns.
    """
    try:
        if not is_in_place(store, record, target) or os.path.lexists(_unfinished(target)):
            with _turn(target) as folder:
                if not _holds(store, record, target):
                    refuse_strangers(target)
                    _replace(store, record, target, folder)
                for path in _wrong_modes(record, target):
                    with contextlib.suppress(OSError):  # a file system may have no modes
                        os.chmod(path, MODE)
                _mark(target, f"{record.artifact}\n", folder)
        else:
            _forget_unfinished(target)
        _forget_withdrawn(target)
    except OSError as error:
        reached = limits.reached(error)
        raise StoreError(
            f"the package cannot be written to {target}: {error.strerror}",
            [f"while touching {error.filename}"] if error.filename else [],
            f"{reached.hint}; the package itself is in the store"
            if reached is not None and error.errno not in _ABOUT_PLACE
            else "name a writable folder with -o; the package itself is in the store",
        ) from error


def withdraw(target: Path) -> Path | None:
    """Move a package of an earlier build to the folder `.previous` beside it, so that nothing deploys the package.

    Returns the package's new path; None if there is no package, or if the folder was not made by a build. Raises
    StoreError. `materialize` removes the moved package as soon as a build delivers the package again.
    """
    if not (target.is_dir() and marker(target).is_file()):
        return None
    aside = _withdrawn(target)
    try:
        with _turn(target):
            remove(aside)
            aside.parent.mkdir(exist_ok=True)
            os.rename(target, aside)
            marker(target).unlink(missing_ok=True)
    except OSError as error:
        raise StoreError(f"the package {target} cannot be moved away: {error.strerror}") from error
    return aside


def _withdrawn(target: Path) -> Path:
    """Return the path of a package that was moved away; `build/*` of a shell does not match its folder."""
    return target.parent / PREVIOUS / target.name


def _forget_withdrawn(target: Path) -> None:
    """Remove the package that was moved away, after a build has delivered the package again."""
    aside = _withdrawn(target)
    if os.path.lexists(aside):
        with contextlib.suppress(OSError):  # other packages may be in the folder `.previous`
            remove(aside)
            aside.parent.rmdir()


@contextlib.contextmanager
def _turn(target: Path) -> Iterator[Path]:
    """Keep other builders away from a package while the block runs, and yield an empty folder beside it.

    What a killed builder has left is removed before. Raises OSError.
    """
    around = _unfinished(target)
    lock = _lock(around, task=f"writing {target}")
    try:
        left = [each for each in entries(around) if each.name != _LOCK]
        if left and file_lock.are_supported(around):  # without locks, the builder may be alive
            for each in left:
                remove(each)
        folder = Path(tempfile.mkdtemp(dir=around))
        try:
            yield folder
        finally:
            remove(folder)
    finally:
        lock.release()
        _forget_unfinished(target)


def _lock(folder: Path, *, task: str) -> file_lock.FileLock:
    for left in reversed(range(_TRIES)):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            return file_lock.take(folder / _LOCK, task=task)
        except (FileNotFoundError, FileExistsError):  # a builder that ends removes both folders
            if not left:
                raise
    raise AssertionError(folder)


def _forget_unfinished(target: Path) -> None:
    """Remove the folders in which builders write packages if they are empty; a killed builder leaves them, too."""
    for folder in (_unfinished(target), _unfinished(target).parent):
        with contextlib.suppress(OSError):
            folder.rmdir()


def _unfinished(target: Path) -> Path:
    """Return the folder in which builders write a package."""
    return target.parent / UNFINISHED / target.name


def is_in_place(store: Store, record: Record, target: Path) -> bool:
    """Say whether the folder `target` equals a record's artifact and its marker file names that artifact."""
    try:
        marked = regular.read(marker(target)) == f"{record.artifact}\n".encode()
        return marked and _holds(store, record, target) and not any(_wrong_modes(record, target))
    except OSError:
        return False


def marker(target: Path) -> Path:
    """Return the path of a package's marker, a file beside the package with the digest of the copied artifact."""
    return target.parent / f".{target.name}.artifact"


def _holds(store: Store, record: Record, target: Path) -> bool:
    """Say whether a folder has the artifact's files, by content, and no other file, folder or link."""
    try:
        files, folders = digest.entries(target)
        if target.is_symlink() or sorted(files) != sorted(record.files):
            return False
        if not all(stat.S_ISREG(os.lstat(target / name).st_mode) for name in record.files):
            return False
        # Empty folders count, because Triton takes each folder for a model.
        if set(folders) != {str(parent) for name in record.files for parent in Path(name).parents} - {"."}:
            return False
        return all(store.contents.digest(target / name) == content for name, (_, content) in record.files.items())
    except OSError:
        return False


def _wrong_modes(record: Record, target: Path) -> Iterator[Path]:
    """Yield the package's files whose modes are not the modes that a build gives."""
    files = (target / name for name in record.files)
    return (path for path in files if stat.S_IMODE(os.lstat(path).st_mode) != MODE)


def refuse_strangers(target: Path) -> None:
    """Refuse to replace a file, link or folder that no build made. Raises StoreError, and OSError."""
    if not os.path.lexists(target) or os.path.lexists(marker(target)):
        return
    if target.is_dir() and not target.is_symlink() and not any(target.iterdir()):
        return
    raise StoreError(
        f"{target} is in the way: it was not made by a build",
        hint="move it away, or name another folder with -o",
    )


def _mark(target: Path, text: str, folder: Path) -> None:
    """Write the package's marker in the place of whatever lies there; `folder` is temporary. Raises OSError."""
    if marker(target).is_dir() and not marker(target).is_symlink():
        remove(marker(target))
    replace(marker(target), text.encode(), fresh=folder / "marker")


def _replace(store: Store, record: Record, target: Path, folder: Path) -> None:
    """Make a new copy of the package in a temporary folder, and exchange it with the old package. Raises OSError.

    Where the system cannot exchange two folders, there is no package for the moment between two renames.
    """
    fresh = folder / "package"
    fresh.mkdir()
    for relative in record.files:
        copy(store.artifact_path(record.artifact) / relative, fresh / relative)
    _mark(target, "", folder)  # before the package, so that a killed build leaves no package without a marker
    if os.path.lexists(target):
        if target.is_dir() and not target.is_symlink():
            with contextlib.suppress(OSError):
                target.chmod(0o755)  # a folder can only move to another folder if its owner may write to it
        if exchange(fresh, target):
            return
        os.rename(target, folder / "old")
    os.rename(fresh, target)


def exchange(one: Path, other: Path) -> bool:
    """Exchange two paths of one file system at one moment: no reader finds neither of the files or folders.

    Returns False where the system cannot do it; nothing has changed then. Raises OSError, for example where one of the
    paths does not exist.
    """
    if sys.platform != "linux":
        return False
    try:
        failed = ctypes.CDLL(None, use_errno=True).renameat2(
            _FROM_HERE, os.fsencode(one), _FROM_HERE, os.fsencode(other), _EXCHANGE
        )
    except AttributeError:  # a C library without renameat2
        return False
    if not failed:
        return True
    code = ctypes.get_errno()
    if code in _UNABLE:
        return False
    raise OSError(code, os.strerror(code), str(one), None, str(other))
