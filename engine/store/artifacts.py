"""The artifacts of a store, and its pool of files: whole, damaged, mended, and what is put aside."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from engine import digest
from engine.digest import Digest
from engine.store.disk import link_or_copy, remove
from engine.store.layout import Layout
from engine.store.record import Record
from engine.store.stat_cache import StatCache, row_of


class Artifacts:
    """The folders of artifacts, each filed under the digest of its content, and the pool, which has each content once.

    The files of artifacts are hard links to the files of the pool.
    """

    def __init__(self, layout: Layout, contents: StatCache) -> None:
        self._layout = layout
        self._contents = contents

    def is_whole(self, record: Record) -> bool:
        """Say whether a record's artifact holds the record's files, unchanged, and nothing else."""
        folder = self._layout.artifacts / record.artifact
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
            self.offer(path, content)
        return True

    def add(self, folder: Path, record: Record) -> None:
        """Move the files of a record's artifact, which lie in `folder`, into the store. Raises OSError."""
        for name, (_, content) in record.files.items():
            self._take(f"{folder}/{name}", content)
        target = f"{self._layout.artifacts}/{record.artifact}"
        if os.path.lexists(target):
            if self.is_whole(record):
                return
            self.put_aside(Path(target))
        try:
            os.rename(folder, target)
        except OSError:
            # Another builder has published the same content first.
            if not self.is_whole(record):
                raise

    def _take(self, path: str, content: Digest) -> None:
        """Add a staged file to the pool, or replace it by a link to the pool's file of this content. Raises OSError."""
        pooled = self._layout.pooled(content)
        if not self.offer(Path(path), content) and self._has(pooled, content):
            os.unlink(path)
            link_or_copy(pooled, Path(path))

    def offer(self, path: Path, content: Digest) -> bool:
        """Add an undamaged file to the pool, unless the pool has an undamaged file of the same content.

        Returns True if the file was added, False if the pool had the file already, and where the file system has no
        hard links. Raises OSError.
        """
        pooled = self._layout.pooled(content)
        with contextlib.suppress(OSError):  # the usual case: the pool has its folder and lacks the content
            os.link(path, pooled)
            return True
        with contextlib.suppress(OSError):
            if os.path.samefile(path, pooled) or self._has(pooled, content):
                return False
        if not pooled.parent.is_dir():
            remove(pooled.parent)
        pooled.parent.mkdir(exist_ok=True)
        remove(pooled)
        with contextlib.suppress(OSError):  # no hard links, or another builder was first
            os.link(path, pooled)
            return True
        return False

    def _has(self, path: Path, content: Digest) -> bool:
        """Say whether a path is a readable regular file with the digest `content`."""
        try:
            return self._contents.digest(path) == content and not path.is_symlink()
        except OSError:
            return False

    def mend(self, record: Record, folder: Path) -> bool:
        """Mend a damaged artifact with the pool's files, or move it to `quarantine/`; say whether it is whole now.

        `folder` is an empty folder to work in. The caller keeps collections out. Raises OSError.
        """
        target, fresh = self._layout.artifacts / record.artifact, folder / "fresh"
        fresh.mkdir()
        whole = all(self._gather(fresh / name, target / name, content) for name, (_, content) in record.files.items())
        if os.path.lexists(target):
            self.put_aside(target)
        if whole:
            os.rename(fresh, target)
        return whole

    def _gather(self, target: Path, stored: Path, content: Digest) -> bool:
        """Link an undamaged file of this content, the pool's or `stored`, to `target`; say whether there was one."""
        source = next((path for path in (self._layout.pooled(content), stored) if self._has(path, content)), None)
        if source is None:
            return False
        target.parent.mkdir(parents=True, exist_ok=True)
        link_or_copy(source, target)
        return True

    def put_aside(self, path: Path) -> Path:
        """Move a damaged file or folder to `quarantine/`, where nothing reads it; return its path. Raises OSError."""
        self._layout.quarantine.mkdir(exist_ok=True)
        target = self._layout.quarantine / f"{path.name}.{os.urandom(4).hex()}"
        with contextlib.suppress(FileNotFoundError):
            os.rename(path, target)
        return target
