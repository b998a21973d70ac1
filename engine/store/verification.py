"""Verify a store: compare every file with its digest or seal, and mend damaged files or move them to `quarantine/`."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from engine import digest, snapshot
from engine.digest import Digest
from engine.store import file_lock, heads, layout, presence
from engine.store.disk import entries, remove
from engine.store.notes import KINDS, read_kept
from engine.store.opening import open_store
from engine.store.record import Record
from engine.store.sealed import sealed
from engine.store.stat_cache import Row, stat_row
from engine.store.store import Store

_CONTRADICTED = "the content changed, but the size and the times did not; the next build reads the file"


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
    orphans: int = 0
    """The number of undamaged artifacts and files that no record names, left by killed builds for collection."""
    swept: int = 0


def verify(
    root: Path, *, parallel: int, sources: bool = False, on_progress: Callable[[int, int], None] = lambda *_: None
) -> Verdict:
    """Read every file of the store at `root`; mend damaged files or move them to `quarantine/`. Raises StoreError.

    With `sources`, also read the sources and packages that builds have read, and make the next build of each recipe
    read its files.

    Builds may run during a verification. `on_progress` gets the number of files read so far and the number of all
    files.
    """
    verdict = Verdict()
    stamped = layout.is_stamped(layout.Layout(root))
    store = open_store(root)
    if not stamped:
        verdict.damages.append(Damage(store.layout.stamp, "the stamp was missing or damaged", mended=True))
    verdict.swept = presence.sweep(store.layout.staging, store.layout.gate)
    try:
        contents = StoredContents(store, parallel, on_progress)
        verdict.files, verdict.bytes = contents.files, contents.bytes
        _Inspection(store, verdict, contents).run()
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


class StoredContents:
    """The digest of every file under `artifacts/` and `files/`, each inode read once, by several threads."""

    def __init__(self, store: Store, parallel: int, on_progress: Callable[[int, int], None]) -> None:
        """Read the files. `on_progress` gets the number of files read so far and the number of all files."""
        paths: dict[Row, Path] = {}
        for folder in (store.layout.files, store.layout.artifacts):
            for name in digest.walk(folder):
                with contextlib.suppress(OSError):
                    paths.setdefault(stat_row(folder / name), folder / name)
        self.files = len(paths)
        self.bytes = sum(row[2] for row in paths)
        self._read: dict[Row, Digest | None] = {}
        with ThreadPoolExecutor(parallel) as pool:
            for row, content in zip(paths, pool.map(_content_of, paths.values()), strict=True):
                self._read[row] = content
                on_progress(len(self._read), self.files)

    def of(self, path: Path) -> Digest | None:
        """Return the digest of a file's bytes, None for a link and where the file cannot be read."""
        if path.is_symlink():
            return None
        with contextlib.suppress(OSError, KeyError):
            return self._read[stat_row(path)]
        return _content_of(path)


def _content_of(path: Path) -> Digest | None:
    try:
        return digest.of_file(path)
    except OSError:
        return None


class _Inspection:
    """One inspection of all parts of a store: records, pool, artifacts, logs, notes, kept files and snapshots."""

    def __init__(self, store: Store, verdict: Verdict, contents: StoredContents) -> None:
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
        self._explanations()
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
        """Return what is wrong with an artifact that a record names, or None; forget the stat row of a damaged file."""
        record = next(record for record in self.records.values() if record.artifact == artifact)
        folder = self.store.artifact_path(artifact)
        if folder.is_symlink() or not folder.is_dir():
            away = self.store.read(record.digest) is None or self.store.is_on_remote(record)
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

    def _explanations(self) -> None:
        """Put damaged logs and traces aside, and let the records name them no more: they decide nothing."""
        reported: set[Path] = set()
        for key, record in self.records.items():
            if key in self.lost or not self._lacking(record):
                continue
            current = self.store.read(key)
            lacking = {} if current is None else self._lacking(current)  # the job may have run again meanwhile
            for name, path in lacking.items():
                if path not in reported:  # records share traces
                    self._say(path, f"the {name} is {'not as it was written' if path.exists() else 'missing'}")
                    reported.add(path)
                if path.exists():
                    self.store.artifacts.put_aside(path)
            if current is not None and lacking:
                content = sealed({**current.fields(), **dict.fromkeys(lacking, "")})
                self.store.write(self.store.record_path(key), content)

    def _lacking(self, record: Record) -> dict[str, Path]:
        """Return the paths of a record's missing or damaged log and trace, by the names of the record's fields."""
        places = {"log": self.store.log_path(record.digest), "trace": self.store.trace_path(record.trace)}
        own = {name: path for name, path in places.items() if getattr(record, name) and not record.origin}
        return {name: path for name, path in own.items() if self.contents.of(path) != getattr(record, name)}

    def _disposable_files(self) -> None:
        """Remove damaged files that explain builds or save time: the next build goes on without them."""
        at, notes = self.store.layout, self.store.notes
        for kind in KINDS:
            why = "the note is not as it was written"
            self._drop_damaged(at.root / kind, lambda path: notes.read(path.parent.name, path.stem), why)
        for key in heads.without_record(self.store, self.lost):
            self._say(self.store.record_path(key), "the record that a build has left is missing")
        self._drop_damaged(at.kept, read_kept, "the kept file is not as it was kept")
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
