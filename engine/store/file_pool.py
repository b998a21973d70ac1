"""The pool of files: each content once, and artifacts are hard links to it."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from engine.digest import Digest
from engine.store.copying import link_or_copy
from engine.store.disk import remove, same_file
from engine.store.layout import Layout
from engine.store.stat_cache import StatCache


class FilePool:
    """The files of all artifacts by the digests of their contents."""

    def __init__(self, layout: Layout, contents: StatCache) -> None:
        self._layout = layout
        self._contents = contents

    def take(self, path: Path, content: Digest) -> None:
        """Replace a staged file by a link to the pool's file of this content, or add it to the pool. Raises OSError."""
        pooled = self._layout.pooled(content)
        if same_file(path, pooled):
            return
        if self.has(pooled, content):
            path.unlink()
            link_or_copy(pooled, path)
        else:
            self.offer(path, content)

    def take_new(self, path: str, content: Digest) -> None:
        """Add a new file to the pool, or replace it by a link to the pool's file. Raises OSError."""
        try:
            os.link(path, f"{self._layout.files}/{content[:2]}/{content}")
        except OSError:
            self.take(Path(path), content)

    def lacks(self, content: Digest) -> bool:
        """Return True if the pool has no file whose digest is `content`."""
        return not self._layout.pooled(content).exists()

    def offer(self, path: Path, content: Digest) -> bool:
        """Add an undamaged file to the pool, unless the pool has an undamaged file of the same content.

        Returns True if the file was added, False if the pool had the file already. Raises OSError.
        """
        pooled = self._layout.pooled(content)
        if same_file(path, pooled) or self.has(pooled, content):
            return False
        if not pooled.parent.is_dir():
            remove(pooled.parent)
        pooled.parent.mkdir(exist_ok=True)
        remove(pooled)
        with contextlib.suppress(OSError):  # the file system has no hard links, or another builder was first
            os.link(path, pooled)
            return True
        return False

    def has(self, path: Path, content: Digest) -> bool:
        """Say whether a path is a readable regular file with the digest `content`."""
        try:
            return self._contents.digest(path) == content and not path.is_symlink()
        except OSError:
            return False

    def gather(self, target: Path, stored: Path, content: Digest) -> bool:
        """Link an undamaged file of this content, the pool's or `stored`, to `target`; say whether there was one."""
        source = next((path for path in (self._layout.pooled(content), stored) if self.has(path, content)), None)
        if source is None:
            return False
        target.parent.mkdir(parents=True, exist_ok=True)
        link_or_copy(source, target)
        return True
