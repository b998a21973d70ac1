"""Temporary folders beside a package: one for each attempt to write the package, and those of killed builds."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from engine.store import file_lock
from engine.store.disk import remove

FOLDER = ".unfinished"
"""The name of the folder beside packages that holds the temporary folders; it exists only while one of them does."""
_LOCK = "lock"
"""The name of the file in a temporary folder that its builder holds locked."""


def leftovers(place: Path) -> list[Path]:
    """Return a package's temporary folders: those of killed builders, and those of running builders. Raises OSError."""
    # Builders of version 0.1.0 wrote to these three paths.
    older = [place.parent / f".{place.name}.{kind}" for kind in ("fresh", "old", "mark")]
    try:
        names = os.listdir(place.parent / FOLDER)
    except FileNotFoundError:
        names = []
    return [
        *filter(os.path.lexists, older),
        *(place.parent / FOLDER / name for name in names if name.rpartition("-")[0] == place.name),
    ]


@contextlib.contextmanager
def temporary(place: Path) -> Iterator[Path]:
    """Yield a new folder on the file system of a package; no other builder uses or removes the folder.

    The folder is removed after the `with` block. The folders of killed builders are removed before. Raises OSError.
    """
    folder, lock = _own(place)
    try:
        _sweep(place, folder)
        yield folder
    finally:
        remove(folder)
        lock.release()
        with contextlib.suppress(OSError):  # the folders of other builders may be in it
            folder.parent.rmdir()


def _own(place: Path) -> tuple[Path, file_lock.FileLock]:
    """Make a folder and lock its lock file."""
    while True:
        (place.parent / FOLDER).mkdir(exist_ok=True)
        # Until the lock is taken, a builder with another store may remove the folder as a dead builder's.
        with contextlib.suppress(FileNotFoundError):
            folder = Path(tempfile.mkdtemp(prefix=f"{place.name}-", dir=place.parent / FOLDER))
            lock = file_lock.try_take(folder / _LOCK, task=f"writing {place}")
            if lock is not None:
                return folder, lock


def _sweep(place: Path, own: Path) -> None:
    """Remove the temporary folders of killed builders."""
    others = [left for left in leftovers(place) if left != own]
    if not others or not file_lock.work(own):
        return  # without file locks, the folders of dead and of living builders look the same
    for left in others:
        if left.is_symlink() or not left.is_dir():
            remove(left)
            continue
        with contextlib.suppress(OSError):
            left.chmod(0o700)
            lock = file_lock.try_take(left / _LOCK)
            if lock is not None:
                remove(left)
                lock.release()
