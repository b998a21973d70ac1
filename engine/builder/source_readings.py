"""Readings of sources: what each source contains, and the stat rows that its files had when they were read."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from engine import digest
from engine.digest import Digest
from engine.store.file_systems import tells_changes
from engine.store.stat_cache import Row, is_settled, settled_row, stat_row

if TYPE_CHECKING:
    from engine.builder.job import SourceName
    from engine.builder.sources import Resolved
    from engine.store.store import Store

_CHANGED = 4
"""The index of the change time in a stat row."""
_MOST_READINGS = 4
"""How often a source is read in a row while a program adds files to the folders of the source."""


@dataclass
class _Reading:
    """A source, with the stat rows that its files had when their content was read, and the digests of the files."""

    resolved: Resolved
    rows: Mapping[Path, Row] = field(default_factory=dict)
    digests: Mapping[Path, Digest] = field(default_factory=dict)


class SourceReadings:
    """The sources that a build has read. A build reads each source only once."""

    def __init__(
        self,
        store: Store,
        *,
        refresh: bool = False,
        pinned: Mapping[str, str] | None = None,
        placed: Mapping[SourceName, Resolved] | None = None,
    ) -> None:
        """`pinned` maps "hf:REPO@REVISION" to a commit, so that the hub is not asked for the revision's commit.

        `placed` are sources that need no reading: nobody else writes where they are.
        """
        self._store = store
        self._refresh = refresh
        self._pinned = pinned or {}
        self._known = {source: _Reading(resolved) for source, resolved in (placed or {}).items()}
        self._resolutions = store.notes.get("resolutions", "hub")

    def resolved(self, source: SourceName) -> Resolved:
        """Return the location of a source, and the digest or commit of the source's content."""
        known = self._known.get(source)
        if known is None:
            known = self._known[source] = self._settled(source)
        return known.resolved

    def rows(self, source: SourceName) -> Mapping[Path, Row]:
        """Return the files of a source with the stat rows from before they were read; {} for a source not read yet."""
        known = self._known.get(source)
        return known.rows if known else {}

    def files(self) -> Iterator[Path]:
        """Yield the files and folders of all sources that were read."""
        return (path for reading in self._known.values() for path in reading.rows)

    def changed_file(self, sources: Iterable[SourceName] | None = None) -> Path | None:
        """Return a file of some sources, or of all, that changed after it was read; None if no file changed."""
        for source in self._known if sources is None else sources:
            known = self._known.get(source)
            for path, row in (known.rows if known else {}).items():
                if differs(path, row) or (known and _reads_differently(path, known.digests.get(path))):
                    return path
        return None

    def _settled(self, source: SourceName) -> _Reading:
        """Read a source; read it again where a folder changed meanwhile, because a file may have been added."""
        for _ in range(_MOST_READINGS):
            began_ns = time.time_ns()
            watched = self._read_source(source)
            folders = watched.rows.keys() - watched.digests.keys()
            rows = [watched.rows[path] for path in folders]
            # A change time in the future is not waited for: the clock was set back.
            if all(is_settled(row, began_ns) or row[_CHANGED] > time.time_ns() for row in rows):
                break
        return watched

    def _read_source(self, source: SourceName) -> _Reading:
        from engine.builder import sources

        rows: dict[Path, Row] = {}
        digests: dict[Path, Digest] = {}

        def digest_file(path: Path) -> Digest:
            settled_row(path)  # a change while the content is read gets another change time
            rows[path], digests[path] = self._store.contents.read(path)
            return digests[path]

        resolved = sources.resolve(
            source,
            digest_file=digest_file,
            remembered=lambda name: self._pinned.get(name) or self._resolutions.get(name),
            refresh=self._refresh,
        )
        if resolved.resolution is not None and resolved.resolution[0] not in self._pinned:
            name, commit = resolved.resolution
            self._resolutions[name] = commit
            self._store.notes.keep("resolutions", "hub", self._resolutions)
        return _Reading(resolved, {path: rows.get(path) or settled_row(path) for path in resolved.files}, digests)


def differs(path: Path, row: Row) -> bool:
    """Say whether a file has another stat row than `row`, or is missing."""
    try:
        return stat_row(path) != row
    except OSError:
        return True


def _reads_differently(path: Path, content: Digest | None) -> bool:
    """Read a file again whose stat row may not show a change; say whether its digest is another than `content`."""
    try:
        return content is not None and not tells_changes(path) and digest.of_file(path) != content
    except OSError:
        return True
