"""The store in `cache/`: artifacts by the digest of their content, and records by the digest of their key."""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from engine import digest
from engine.digest import Digest
from engine.errors import StoreError
from engine.key import Key, digest_of
from engine.store import binding, file_lock, layout, output
from engine.store.copying import link_or_copy
from engine.store.disk import explained, remove, same_file
from engine.store.file_lock import FileLock
from engine.store.holder import Holder, holder_of
from engine.store.layout import Layout
from engine.store.notes import Notes
from engine.store.output import Files
from engine.store.presence import Presence, sweep
from engine.store.sealed import sealed, unsealed
from engine.store.stat_cache import StatCache, row_of
from engine.system import regular

_MOST_NUMBERS = 1 << 20
"""The greatest number of files with one name in `quarantine/`; a further damaged file of the name is deleted."""


@dataclass(frozen=True)
class Record:
    """The record of a job's run: the rows of its key, its artifact, and the measurements of the run."""

    key: Key
    artifact: Digest
    files: Files
    report: Mapping[str, object]
    seconds: float
    peak_bytes: int
    machine: Mapping[str, str] = field(default_factory=dict)
    made_at: float = 0.0
    report_version: int = 1
    """The version of the report's form; records without this field have version 1."""
    log: str = ""
    """The digest of the run's log; empty for an empty log."""
    job: str = ""
    """The name of the job, for explanations only."""
    step: str = ""
    """The class of the step that ran, as `module:Class`; empty in older records."""
    binding: str = ""
    """The digest of step, key, output and report (`engine.store.binding`), computed where the output was read.

    The binding is empty in older records, which cannot be checked against it.
    """
    trace: str = ""
    """The digest of the trace: what the run read. Empty for a record of a version that kept no traces."""
    gaps: Sequence[Mapping[str, str]] = ()
    """What the run read and no row of the key covers: the fields of each `Gap`."""
    anonymous_bytes: int = 0
    """The largest memory of the run without the pages of mapped files, from samples; 0 for a run without samples."""

    @property
    def digest(self) -> Digest:
        """The digest of the key, under which the record is filed."""
        return digest_of(self.key)

    @property
    def size(self) -> int:
        """The artifact's size in bytes."""
        return sum(size for size, _ in self.files.values())

    @property
    def is_bound(self) -> bool:
        """Whether the output and the report were made for the record's own key and step, as far as the record tells."""
        own = binding.of(step=self.step, key=self.digest, files=self.files, report=self.report)
        return self.binding in ("", own)

    def fields(self) -> dict[str, object]:
        """Return the record's fields as a mapping from name to value, as the record's file has them."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


class Store:
    """A cache directory.

    A program writes every file of the store to `staging/` first, and then renames the file into place.

    A stored file with a known stat row is trusted without reading it. A stored file with an unknown stat row is read;
    if its content does not match its digest, the file is moved to `quarantine/`.
    """

    def __init__(self, root: Path, *, afresh: bool = False) -> None:
        """Open the store at `root`; a missing store is made. Raises StoreError.

        If `afresh` is true, no stat row of an earlier build is trusted: every file is read once.
        """
        self.root = root.absolute()
        self.layout = Layout(self.root)
        self._presence: Presence | None = None
        with explained(self.root):
            layout.prepare(self.layout)
        self.notes = Notes(self.root, self.write)
        self.contents = StatCache(self.notes, afresh=afresh)

    # -- reading ---------------------------------------------------------------------------------------------

    def find(self, key: Key) -> Record | None:
        """Return the record of a key with an undamaged artifact, or None.

        A damaged artifact is mended from the pool where that is possible, and moved to `quarantine/` otherwise.
        """
        record = self.read(digest_of(key))
        if record is None or record.key != key:
            return None
        return record if self.is_whole(record) or self._mended(record) else None

    def read(self, key: Digest | str) -> Record | None:
        """Return the record filed under a key's digest; None for a missing or damaged record."""
        try:
            raw = unsealed(regular.read(self.record_path(key)))
            files = {name: (int(size), Digest(content)) for name, (size, content) in raw.pop("files").items()}
            raw.setdefault("job", raw["key"].get("step", ""))  # older records have the step's name as a row of the key
            raw["gaps"] = tuple(raw.get("gaps", ()))
            record = Record(**raw, files=files)
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return None
        return record if record.digest == key else None

    def records(self) -> Iterator[Record]:
        """Yield every record, sorted by the digests of the keys."""
        for path in sorted(self.layout.records.glob("*.json")):
            record = self.read(path.stem)
            if record is not None:
                yield record

    def record_path(self, key: Digest | str) -> Path:
        """Return the path of the record of a key's digest."""
        return self.layout.records / f"{key}.json"

    def artifact_path(self, artifact: Digest | str) -> Path:
        """Return the folder of an artifact.

        An artifact's files are read-only, and other artifacts may be hard links to the same files.
        """
        return self.layout.artifacts / artifact

    def log_path(self, key: Digest | str, *, failed: bool = False) -> Path:
        """Return the path of the log of the run that made a record, or of a failed run."""
        return self.layout.logs / f"{key}{'.failed' if failed else ''}.log"

    def trace(self, record: Record) -> bytes | None:
        """Return the trace of the run that made a record; None for a record without an undamaged trace."""
        try:
            content = regular.read(self.trace_path(record.trace))
        except OSError:
            return None
        return content if digest.of_bytes(content) == record.trace else None

    def trace_path(self, trace: str) -> Path:
        """Return the path of the trace with a digest."""
        return self.layout.traces / f"{trace}.json"

    def is_whole(self, record: Record) -> bool:
        """Say whether a record's artifact holds the record's files, unchanged, and nothing else."""
        folder = self.artifact_path(record.artifact)
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
        if self.contents.known(row) == content:
            return True
        if self.contents.digest(path) != content:
            return False
        # The unknown stat row shows that this file or the pool's link has changed: the pool may lack the content.
        with contextlib.suppress(OSError):
            self.offer(path, content)
        return True

    def drop_snapshots(self) -> None:
        """Remove all snapshots, so that the next build of each recipe reads its files."""
        for path in self.layout.snapshots.glob("*"):
            with contextlib.suppress(OSError):
                path.unlink()

    # -- writing ---------------------------------------------------------------------------------------------

    @property
    def presence(self) -> Presence:
        """This builder's presence, made at the first use and removed by `leave`. Raises StoreError."""
        if self._presence is None:
            with explained(self.root):
                sweep(self.layout.staging, self.layout.gate)
                self._presence = Presence(self.layout.staging, self.layout.gate)
        return self._presence

    def use(self, key: Digest) -> None:
        """List a record as in use by this builder before looking it up, so that no collection removes the record."""
        with contextlib.suppress(OSError, StoreError):  # a full or read-only store can still be read
            self.presence.use(key)

    def leave(self) -> None:
        """Remove this builder's presence and save the digests of files."""
        self.contents.save()
        if self._presence is not None:
            self._presence.leave()
            self._presence = None

    @cached_property
    def locks_work(self) -> bool:
        """Whether file locks work on the store's file system."""
        try:
            return file_lock.work(self.layout.locks)
        except OSError:
            return True  # a full or read-only store: the first write reports the error

    def try_lock(self, name: str, *, task: str = "a job") -> FileLock | None:
        """Take the lock of a key, or return None while another builder holds it.

        If the builder that held the lock has died, the lock is free.
        """
        with explained(self.root):
            return file_lock.try_take(self.layout.locks / name, task=task)

    def holder_of(self, name: str) -> Holder | None:
        """Return the process that holds the lock of a key; None if the process has not signed the lock."""
        return holder_of(self.layout.locks / name)

    def commit(self, key: Key, folder: Path, files: Files, *, report: Mapping[str, object], report_version: int = 1,
               seconds: float, peak_bytes: int, machine: Mapping[str, str], log: bytes = b"",
               anonymous_bytes: int = 0, job: str = "", step: str = "", bound: str = "", trace: bytes = b"",
               gaps: Sequence[Mapping[str, str]] = ()) -> Record:  # fmt: skip
        """Move the output folder `folder` into the store as the artifact of `key`, and write the record.

        Raises StoreError.

        `bound` is the record's binding, as the process that read the output computed it for the class `step`.
        The record is written last, so that a record never names an artifact that is not in the store yet.
        """
        record = Record(
            key=key, artifact=output.tree(files), files=files, report=report, report_version=report_version,
            seconds=round(seconds, 3), peak_bytes=peak_bytes, machine=machine, made_at=round(time.time(), 3),
            log=digest.of_bytes(log) if log else "", job=job, step=step, binding=bound,
            trace=digest.of_bytes(trace) if trace else "", gaps=gaps, anonymous_bytes=anonymous_bytes,
        )  # fmt: skip
        with explained(self.root), file_lock.hold(self.layout.gate, shared=True):
            self.keep_log(record.digest, log)
            self._keep_trace(record, trace)
            for name, (_, content) in files.items():
                self._pool(folder / name, content)
            self._publish(folder, record)
            self.write(self.record_path(record.digest), sealed(record.fields()))
        return record

    def write(self, path: Path, data: bytes) -> None:
        """Replace a file of the store in one step. Raises OSError, StoreError."""
        self.presence.write(path, data)

    def keep_log(self, key: Digest, log: bytes, *, failed: bool = False) -> None:
        """Write the log of a job's last run to the store; an empty log removes the old log. Raises OSError."""
        remove(self.log_path(key, failed=True))
        if log:
            self.write(self.log_path(key, failed=failed), log)
        elif not failed:
            remove(self.log_path(key))

    def _keep_trace(self, record: Record, content: bytes) -> None:
        """Write a record's trace, unless the store has it undamaged; many jobs have the same trace. Raises OSError."""
        if content and self.trace(record) is None:
            self.layout.traces.mkdir(exist_ok=True)
            self.write(self.trace_path(record.trace), content)

    def _pool(self, path: Path, content: Digest) -> None:
        """Replace a staged file by a link to the pool's file of this content, or add it to the pool. Raises OSError."""
        pooled = self.layout.pooled(content)
        if same_file(path, pooled):
            return
        if self._is(pooled, content):
            path.unlink()
            link_or_copy(pooled, path)
        else:
            self.offer(path, content)

    def lacks(self, content: Digest) -> bool:
        """Return True if the pool has no file whose digest is `content`."""
        return not self.layout.pooled(content).exists()

    def offer(self, path: Path, content: Digest) -> bool:
        """Add an undamaged file to the pool, unless the pool has an undamaged file of the same content.

        Returns True if the file was added, False if the pool had the file already. Raises OSError.
        """
        pooled = self.layout.pooled(content)
        if same_file(path, pooled) or self._is(pooled, content):
            return False
        if not pooled.parent.is_dir():
            remove(pooled.parent)
        pooled.parent.mkdir(exist_ok=True)
        remove(pooled)
        with contextlib.suppress(OSError):  # the file system has no hard links, or another builder was first
            os.link(path, pooled)
            return True
        return False

    def _is(self, path: Path, content: Digest) -> bool:
        try:
            return self.contents.digest(path) == content and not path.is_symlink()
        except OSError:
            return False

    def _publish(self, folder: Path, record: Record) -> None:
        place = self.artifact_path(record.artifact)
        if os.path.lexists(place):
            if self.is_whole(record):
                return
            self.put_aside(place)
        try:
            os.rename(folder, place)
        except OSError:
            # Another builder has published the same content first.
            if not self.is_whole(record):
                raise

    def _mended(self, record: Record) -> bool:
        """Mend a damaged artifact with the pool's files, or move it to `quarantine/`; say whether it is whole now."""
        place = self.artifact_path(record.artifact)
        try:
            with self.presence.workplace() as folder, file_lock.hold(self.layout.gate, shared=True):
                fresh = folder / "fresh"
                fresh.mkdir()
                whole = all(
                    self._gathered(fresh / name, place / name, content) for name, (_, content) in record.files.items()
                )
                if os.path.lexists(place):
                    self.put_aside(place)
                if whole:
                    os.rename(fresh, place)
                return whole
        except OSError:
            return False  # the store cannot be written: the job runs again, or fails with the reason

    def _gathered(self, target: Path, stored: Path, content: Digest) -> bool:
        source = next((path for path in (self.layout.pooled(content), stored) if self._is(path, content)), None)
        if source is None:
            return False
        target.parent.mkdir(parents=True, exist_ok=True)
        link_or_copy(source, target)
        return True

    def put_aside(self, path: Path) -> Path:
        """Move a damaged file or folder to `quarantine/`, where nothing reads it; return its path. Raises OSError."""
        self.layout.quarantine.mkdir(exist_ok=True)
        for number in range(_MOST_NUMBERS):
            place = self.layout.quarantine / f"{path.name}.{number}"
            if not os.path.lexists(place):
                with contextlib.suppress(FileNotFoundError):
                    os.rename(path, place)
                return place
        remove(path)
        return path
