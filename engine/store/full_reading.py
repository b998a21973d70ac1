"""Read every stored file once, in several threads; a reading that was interrupted is gone on with."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from engine import digest
from engine.digest import Digest
from engine.store import stat_cache
from engine.store.stat_cache import Row, stat_row
from engine.store.store import Store
from engine.system.file_systems import tells_changes

_PROGRESS = ("stat", "verified")
_SAVE_SECONDS = 2.0


@dataclass(frozen=True)
class Damage:
    """A damaged file or folder of the store."""

    path: Path
    why: str
    mended: bool = False
    """Whether the damage is repaired already; if not, the next build that needs the file makes the file again."""


@dataclass
class Verdict:
    """The findings of a verification of the store (`recipe cache verify`)."""

    damages: list[Damage] = field(default_factory=list)
    records: int = 0
    files: int = 0
    bytes: int = 0
    resumed: int = 0
    """The number of files that an earlier, interrupted verification had read already."""
    orphans: int = 0
    """The number of undamaged artifacts and files that no record names, left by killed builds for collection."""
    swept: int = 0


class FullReading:
    """The digest of every file under `artifacts/` and `files/`, each inode read once, by several threads."""

    def __init__(self, store: Store, verdict: Verdict, parallel: int, on_progress: Callable[[int, int], None]) -> None:
        """Count in `verdict`. `on_progress` gets the number of files read so far and the number of all files."""
        self._store = store
        self._verdict = verdict
        self._parallel = parallel
        self._on_progress = on_progress
        self._read: dict[str, list[int | str]] = {}
        self._saved = time.monotonic()

    def read(self) -> None:
        """Read the files that an earlier, interrupted verification has not read."""
        earlier = self._store.notes.get(*_PROGRESS)
        todo: dict[str, tuple[Path, Row]] = {}
        for path in self._files():
            with contextlib.suppress(OSError):
                row = stat_row(path)
                name = stat_cache.inode(row)
                if name in todo or name in self._read:
                    continue
                self._verdict.files += 1
                self._verdict.bytes += row[2]
                if stat_cache.is_about(earlier.get(name), row) and tells_changes(path):
                    self._read[name] = earlier[name]
                    self._verdict.resumed += 1
                else:
                    todo[name] = (path, row)
        total = self._verdict.files
        try:
            with ThreadPoolExecutor(self._parallel) as pool:
                for name, row, content in pool.map(_hashed, todo.items()):
                    self._read[name] = stat_cache.entry(row, content)
                    self._on_progress(len(self._read), total)
                    self._save(every=_SAVE_SECONDS)
        except BaseException:
            self._save(every=0.0)
            raise

    def of(self, path: Path) -> Digest | None:
        """Return the digest of a file's bytes, None for a link and where the file cannot be read."""
        if path.is_symlink():
            return None
        try:
            row = stat_row(path)
            known = self._read.get(stat_cache.inode(row))
            if known is not None and stat_cache.is_about(known, row):
                return Digest(str(known[3]))
            return digest.of_file(path)
        except OSError:
            return None

    def finish(self) -> None:
        """Remove the note that lists the files which the verification has read, because the verification has ended."""
        self._store.notes.drop(*_PROGRESS)

    def _files(self) -> Iterator[Path]:
        for folder in (self._store.layout.files, self._store.layout.artifacts):
            for name in digest.walk(folder):
                yield folder / name

    def _save(self, *, every: float) -> None:
        if time.monotonic() - self._saved >= every:
            self._store.notes.keep(*_PROGRESS, self._read)
            self._saved = time.monotonic()


def _hashed(item: tuple[str, tuple[Path, Row]]) -> tuple[str, Row, str]:
    name, (path, row) = item
    try:
        return name, row, digest.of_file(path)
    except OSError as error:
        return name, row, f"unreadable: {error.strerror}"
