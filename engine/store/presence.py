"""The presence of a running builder in a store: its working folder, and the records that it uses."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from engine.digest import Digest
from engine.store import file_lock
from engine.store.disk import remove, replace
from engine.system import regular

_USES = "uses"


class Presence:
    """A builder's own folder under `staging/`, with a locked file that names the records in use.

    The file is locked as long as the builder is alive. The next builder removes the folder of a killed builder, and
    collection (`recipe cache gc`) keeps the records that a living builder names.
    """

    def __init__(self, staging: Path, gate: Path) -> None:
        """Make the builder's folder under `staging/`, and lock the file in the folder.

        Builders share the lock `gate` while they add to the store. Raises OSError.
        """
        with file_lock.hold(gate, shared=True):
            self.folder = Path(tempfile.mkdtemp(dir=staging))
            self._numbers = count()
            self._lock = file_lock.take(self.folder / _USES)

    def use(self, key: Digest) -> None:
        """Note that the builder uses a record; a builder calls `use` before it reads the record. Raises OSError."""
        os.write(self._lock.handle, key.encode() + b"\n")

    def write(self, path: Path | str, data: bytes) -> None:
        """Replace a sealed file as `disk.replace` does, without flushing the content to the disk. Raises OSError.

        A file that a power cut tore no longer matches its seal, and is made again.
        """
        try:
            replace(path, data, fresh=self._fresh())
        except IsADirectoryError:  # a folder has no business in the place of a file of the store
            remove(Path(path))
            replace(path, data, fresh=self._fresh())

    @contextlib.contextmanager
    def workplace(self) -> Iterator[Path]:
        """Yield a new folder in `staging/`, which is removed after the `with` block. Raises OSError."""
        folder = Path(self._fresh())
        folder.mkdir()
        try:
            yield folder
        finally:
            remove(folder)  # unless its user has moved it into the store

    def _fresh(self) -> str:
        return f"{self.folder}/{next(self._numbers)}"

    def leave(self) -> None:
        """Remove the builder's folder and release the file lock."""
        remove(self.folder)
        self._lock.release()


def used(staging: Path) -> set[str]:
    """Return the keys of all records that living builders use. Raises OSError."""
    keys: set[str] = set()
    for folder in filter(Path.is_dir, staging.iterdir()):
        if file_lock.is_locked(folder / _USES):
            with contextlib.suppress(FileNotFoundError):
                keys.update(regular.read_text(folder / _USES).split())
    return keys


def sweep(staging: Path, gate: Path) -> int:
    """Remove the folders and files of killed builders from `staging`, and return their number. Raises OSError."""
    with os.scandir(staging) as entries:
        if next(entries, None) is None or not file_lock.are_supported(gate.parent):
            return 0  # without locks, living builders cannot be told from dead ones
    try:
        with file_lock.hold(gate, wait=False):
            # While this process holds the gate alone, no builder is between making and locking its folder.
            dead = [each for each in staging.iterdir() if not each.is_dir() or not file_lock.is_locked(each / _USES)]
    except BlockingIOError:
        return 0  # other builders are at work: a later builder sweeps
    for entry in dead:
        remove(entry)
    return len(dead)
