"""A builder's presence in a store: where it works, and which records it relies on."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from engine.digest import Digest
from engine.store import file_lock
from engine.store.disk import replace

_USES = "uses"


class Presence:
    """A folder of its own under `staging/`, in it a locked file that names the records in use.

    The lock is the sign of life: the folder of a builder that was killed is removed by the next one, and collection
    (`recipe cache gc`) leaves alone what a living one names.
    """

    def __init__(self, staging: Path, gate: Path) -> None:
        """Move in. `gate` is the lock that is held, shared, while something is made in the store. Raises OSError."""
        with file_lock.hold(gate, shared=True):
            self.folder = Path(tempfile.mkdtemp(dir=staging))
            self._numbers = count()
            self._lock = file_lock.take(self.folder / _USES)

    def use(self, key: Digest) -> None:
        """Name a record before relying on it. Raises OSError."""
        os.write(self._lock.handle, key.encode() + b"\n")

    def write(self, path: Path, data: bytes) -> None:
        """Replace a file so that a reader, or a kill, sees the old or the new, never a part. Raises OSError.

        It is not flushed: what tells its own wholeness is written so, and after a power cut merely made again.
        """
        replace(path, data, fresh=self._fresh())

    @contextlib.contextmanager
    def workplace(self) -> Iterator[Path]:
        """Give a fresh folder; whatever is left in it afterwards is removed. Raises OSError."""
        folder = self._fresh()
        os.mkdir(folder)
        try:
            yield Path(folder)
        finally:
            try:
                os.rmdir(folder)
            except OSError:
                shutil.rmtree(folder, ignore_errors=True)

    def _fresh(self) -> str:
        return f"{self.folder}/{next(self._numbers)}"

    def leave(self) -> None:
        """Remove the folder and go."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self._lock.release()


def used(staging: Path) -> set[str]:
    """Return the digests of all records that living builders rely on. Raises OSError."""
    found: set[str] = set()
    for folder in _builders(staging):
        if file_lock.is_locked(folder / _USES):
            with contextlib.suppress(FileNotFoundError):
                found.update((folder / _USES).read_text().split())
    return found


def sweep(staging: Path, gate: Path) -> int:
    """Remove what killed builders have left, and return how many things that were. Raises OSError."""
    with os.scandir(staging) as entries:
        if next(entries, None) is None or not file_lock.work(gate.parent):
            return 0  # without locks nothing tells the dead from the living
    try:
        with file_lock.hold(gate, wait=False):
            # Nobody is between making something and locking it now: what is not locked is dead.
            dead = [
                entry for entry in staging.iterdir() if not entry.is_dir() or not file_lock.is_locked(entry / _USES)
            ]
    except BlockingIOError:
        return 0  # others are at work: they, or who comes after them, will see to it
    for entry in dead:
        if entry.is_dir():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink(missing_ok=True)
    return len(dead)


def _builders(staging: Path) -> list[Path]:
    return [entry for entry in staging.iterdir() if entry.is_dir()]
