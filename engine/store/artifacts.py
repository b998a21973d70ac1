"""The artifacts of a store: whole, damaged, mended, and what is put aside."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from engine import digest
from engine.digest import Digest
from engine.store.disk import remove
from engine.store.file_pool import FilePool
from engine.store.layout import Layout
from engine.store.record import Record
from engine.store.stat_cache import StatCache, row_of

_MOST_NUMBERS = 1 << 20
"""The greatest number of files with one name in `quarantine/`; a further damaged file of the name is deleted."""


class Artifacts:
    """The folders of artifacts, each filed under the digest of its content. Their files are links to the pool's."""

    def __init__(self, layout: Layout, contents: StatCache, pool: FilePool) -> None:
        self._layout = layout
        self._contents = contents
        self._pool = pool

    def path(self, artifact: Digest | str) -> Path:
        """Return the folder of an artifact."""
        return self._layout.artifacts / artifact

    def is_whole(self, record: Record) -> bool:
        """Say whether a record's artifact holds the record's files, unchanged, and nothing else."""
        folder = self.path(record.artifact)
        try:
            return (
                not folder.is_symlink()
                and all(self._holds(folder / name, size, content) for name, (size, content) in record.files.items())
                and digest.walk(folder) == sorted(record.files)
            )
        except OSError:
            return False

    def _holds(self, path: Path, size: int, content: Digest) -> bool:
        status = os.lstat(path)
        row = row_of(status)
        if row[2] != size or not stat.S_ISREG(status.st_mode):
            return False
        if self._contents.known(row) == content:
            return True
        if self._contents.digest(path) != content:
            return False
        # The unknown stat row shows that this file or the pool's link has changed: the pool may lack the content.
        with contextlib.suppress(OSError):
            self._pool.offer(path, content)
        return True

    def publish(self, folder: Path | str, record: Record) -> None:
        """Move the files of a record's artifact, which lie in `folder`, to their place. Raises OSError."""
        place = f"{self._layout.artifacts}/{record.artifact}"
        if os.path.lexists(place):
            if self.is_whole(record):
                return
            put_aside(self._layout, Path(place))
        try:
            os.rename(folder, place)
        except OSError:
            # Another builder has published the same content first.
            if not self.is_whole(record):
                raise

    def mend(self, record: Record, folder: Path) -> bool:
        """Mend a damaged artifact with the pool's files, or move it to `quarantine/`; say whether it is whole now.

        `folder` is an empty folder to work in. The caller keeps collections out. Raises OSError.
        """
        place, fresh = self.path(record.artifact), folder / "fresh"
        fresh.mkdir()
        whole = all(
            self._pool.gather(fresh / name, place / name, content) for name, (_, content) in record.files.items()
        )
        if os.path.lexists(place):
            put_aside(self._layout, place)
        if whole:
            os.rename(fresh, place)
        return whole


def put_aside(layout: Layout, path: Path) -> Path:
    """Move a damaged file or folder to `quarantine/`, where nothing reads it; return its path. Raises OSError."""
    layout.quarantine.mkdir(exist_ok=True)
    for number in range(_MOST_NUMBERS):
        place = layout.quarantine / f"{path.name}.{number}"
        if not os.path.lexists(place):
            with contextlib.suppress(FileNotFoundError):
                os.rename(path, place)
            return place
    remove(path)
    return path
