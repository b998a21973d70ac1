"""Verify a store: compare every file with its digest or seal, and mend damaged files or move them to `quarantine/`."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from engine import digest, snapshot
from engine.digest import Digest
from engine.store import file_lock, heads, kept, layout, presence
from engine.store.disk import entries, remove
from engine.store.full_reading import Damage, FullReading, Verdict
from engine.store.notes import KINDS, Notes
from engine.store.opening import open_store
from engine.store.sealed import sealed
from engine.store.stat_cache import stat_row
from engine.store.store import Store

_CONTRADICTED = "the content changed, but the size and the times did not; the next build reads the file"


def verify(
    root: Path, *, parallel: int, sources: bool = False, on_progress: Callable[[int, int], None] = lambda *_: None
) -> Verdict:
    """Read every file of the store at `root`; mend damaged files or move them to `quarantine/`. Raises StoreError.

    With `sources`, also read the sources and packages that builds have read, and make the next build of each recipe
    read its files.

    Builds may run during a verification. An interrupted verification continues after the files that it has read
    already. `on_progress` gets the number of files read so far and the number of all files.
    """
    verdict = Verdict()
    stamped = layout.is_stamped(layout.Layout(root))
    store = open_store(root)
    if not stamped:
        verdict.damages.append(Damage(store.layout.stamp, "the stamp was missing or damaged", mended=True))
    verdict.swept = presence.sweep(store.layout.staging, store.layout.gate)
    try:
        contents = FullReading(store, verdict, parallel, on_progress)
        contents.read()
        _Inspection(store, verdict, contents).run()
        contents.finish()
        if sources:
            store.drop_snapshots()
            for path, size, same in store.contents.read_outside():
                verdict.files += 1
                verdict.bytes += size
                if not same:
                    verdict.damages.append(Damage(path, _CONTRADICTED, mended=True))
    finally:
        store.leave()
    return verdict


class _Inspection:
    """One inspection of all parts of a store: records, pool, artifacts, logs, notes, kept files and snapshots."""

    def __init__(self, store: Store, verdict: Verdict, contents: FullReading) -> None:
        self.store = store
        self.verdict = verdict
        self.contents = contents
        self.records = {record.digest: record for record in store.records()}
        self.lost: set[str] = set()
        """The keys of records that the verification moved to the folder `quarantine/`."""

    def run(self) -> None:
        self.verdict.records = len(self.records)
        self._record_files()
        self._pool()
        self._artifacts()
        self._logs()
        self._traces()
        self._disposable_files()

    def _say(self, path: Path, why: str, *, mended: bool = False) -> None:
        self.verdict.damages.append(Damage(path, why, mended=mended))

    def _record_files(self) -> None:
        """Put damaged records aside, and those whose output was made for another key or by another step."""
        for path in sorted(self.store.layout.records.iterdir()):
            key = Digest(path.stem)
            record = self.records.get(key) if path.suffix == ".json" else None
            if record is not None and record.is_bound:
                continue
            with file_lock.hold(self.store.layout.gate, task="cache verify"):
                current = self.store.read(key)
                if (current is not None and (record is None or current.is_bound)) or not os.path.lexists(path):
                    continue  # replaced or collected meanwhile
                self.store.artifacts.put_aside(path)
            self.lost.add(key)
            if record is None:
                self._say(path, "the record is not as it was written")
            else:
                del self.records[key]
                self._say(path, "the output belongs to another key or to another step")

    def _pool(self) -> None:
        for name in digest.walk(self.store.layout.files):
            path = self.store.layout.files / name
            content = self.contents.of(path)
            with contextlib.suppress(FileNotFoundError):  # collected meanwhile
                if content is not None and path == self.store.layout.pooled(content):
                    self.verdict.orphans += path.stat().st_nlink == 1
                    continue
                with contextlib.suppress(OSError):  # a link that leads nowhere
                    self.store.contents.forget(stat_row(path))
                self.store.artifacts.put_aside(path)
                self._say(path, "the content is not what its name says")

    def _artifacts(self) -> None:
        named = {record.artifact for record in self.records.values()}
        faults = {artifact: self._fault(artifact) for artifact in sorted(named)}
        for key, record in self.records.items():
            fault = faults[record.artifact]
            if fault is None:
                continue
            mended = self.store.find(record.key) is not None
            self._say(self.store.artifact_path(record.artifact), fault, mended=mended)
            if not mended:
                self._drop(key)
        for path in sorted(self.store.layout.artifacts.iterdir()):
            if path.name not in named:
                self._unnamed(path)

    def _fault(self, artifact: Digest) -> str | None:
        """Return a description of the damage of an artifact that a record names; None for an undamaged artifact.

        `_fault` also makes the stat cache forget the stat row of a damaged file.
        """
        record = next(record for record in self.records.values() if record.artifact == artifact)
        folder = self.store.artifact_path(artifact)
        if folder.is_symlink() or not folder.is_dir():
            away = self.store.read(record.digest) is None or self.store.is_away(record)
            return None if away else "the artifact is missing"
        for name, (_, content) in record.files.items():
            path = folder / name
            if self.contents.of(path) != content:
                with contextlib.suppress(OSError):
                    self.store.contents.forget(stat_row(path))
                return f"{name} is missing" if not path.exists() else f"the content of {name} is not what was stored"
            pooled = self.store.layout.pooled(content)
            if not pooled.exists() and self.store.artifacts.offer(path, content):
                self._say(pooled, "the stored file is missing", mended=True)
        strangers = set(digest.walk(folder)) - set(record.files)
        return f"{min(strangers)} does not belong to it" if strangers else None

    def _unnamed(self, path: Path) -> None:
        """Count an undamaged artifact that no record names, and move a damaged artifact to the quarantine."""
        files = {name: self.contents.of(path / name) for name in digest.walk(path)} if path.is_dir() else {}
        whole = {name: content for name, content in files.items() if content is not None}
        if path.is_dir() and len(whole) == len(files) and digest.of_tree(whole) == path.name:
            self.verdict.orphans += 1
        elif path.exists():
            self.store.artifacts.put_aside(path)
            self._say(path, "the artifact is not what its name says, and no record names it")

    def _drop(self, key: Digest) -> None:
        """Move a record with a lost artifact to `quarantine/`, unless a builder has made the artifact again."""
        with file_lock.hold(self.store.layout.gate, task="cache verify"):
            record = self.store.read(key)
            if record is not None and not self.store.artifact_path(record.artifact).exists():
                self.store.artifacts.put_aside(self.store.record_path(key))
                self.lost.add(key)

    def _logs(self) -> None:
        for key, record in self.records.items():
            path = self.store.log_path(key)
            if record.log and key not in self.lost and self.contents.of(path) != record.log:
                current = self.store.read(key)
                if current is None or self.contents.of(path) == current.log:
                    continue  # the job has run again meanwhile
                self._say(path, "the log is missing" if not path.exists() else "the log is not as it was written")
                if path.exists():
                    self.store.artifacts.put_aside(path)
                self.store.write(self.store.record_path(key), sealed(replace(current, log="").fields()))

    def _traces(self) -> None:
        damaged = {
            record.trace
            for record in self.records.values()
            if record.trace and not record.origin and self.store.trace(record) is None
        }
        for name in sorted(damaged):
            path = self.store.trace_path(name)
            self._say(path, "the trace is not as it was written" if path.exists() else "the trace is missing")
            if path.exists():
                self.store.artifacts.put_aside(path)
        for key in (key for key, record in self.records.items() if record.trace in damaged and key not in self.lost):
            current = self.store.read(key)
            if current is not None and current.trace in damaged:
                self.store.write(self.store.record_path(key), sealed(replace(current, trace="").fields()))

    def _disposable_files(self) -> None:
        """Remove damaged files that explain builds or save time: the next build goes on without them."""
        at, notes = self.store.layout, self.store.notes
        for kind in KINDS:
            self._drop_damaged(at.root / kind, partial(_read_note, notes, kind), "the note is not as it was written")
        for key in heads.without_record(self.store, self.lost):
            self._say(self.store.record_path(key), "the record that a build has left is missing")
        self._drop_damaged(at.kept, kept.read, "the kept file is not as it was kept")
        for folder, name in ((at.snapshots, "snapshot"), (at.plans, "plan cache")):
            self._drop_damaged(folder, lambda path: snapshot.read(str(path)), f"the {name} is not as it was written")

    def _drop_damaged(self, folder: Path, read: Callable[[Path], object], why: str) -> None:
        for path in entries(folder):
            try:
                read(path)
            except FileNotFoundError:
                continue
            except snapshot.UNREADABLE:
                remove(path)
                self._say(path, why)


def _read_note(notes: Notes, kind: str, path: Path) -> None:
    notes.read(kind, path.stem)
