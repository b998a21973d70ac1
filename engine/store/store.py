"""The only writer of cache/: artifacts by content, records by key."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from engine import digest
from engine.digest import Digest
from engine.errors import StoreError
from engine.key import Key, digest_of
from engine.store import file_lock, layout, output
from engine.store.disk import explained, link_or_copy, same_file
from engine.store.file_lock import FileLock
from engine.store.layout import Layout
from engine.store.notes import Notes
from engine.store.output import Files
from engine.store.presence import Presence, sweep
from engine.store.sealed import sealed, unsealed
from engine.store.stat_cache import StatCache, stat_row


@dataclass(frozen=True)
class Record:
    """What a job made: its key's rows, its artifact, and what was measured while making it."""

    key: Key
    artifact: Digest
    files: Files
    report: Mapping[str, object]
    seconds: float
    peak_bytes: int
    machine: Mapping[str, str] = field(default_factory=dict)
    made_at: float = 0.0
    report_version: int = 1
    """The version of the report's form; records from before versions are of the first."""
    log: str = ""
    """The digest of the log of this run; empty where it said nothing."""
    job: str = ""
    """What the job was called that made it: it explains and decides nothing."""

    @property
    def digest(self) -> Digest:
        """The digest of its key, under which it is filed."""
        return digest_of(self.key)

    @property
    def size(self) -> int:
        """The artifact's size in bytes."""
        return sum(size for size, _ in self.files.values())

    def fields(self) -> dict[str, object]:
        """Return what is filed."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


class Store:
    """A cache directory. Everything is written to `staging/` and renamed into place.

    What is in it is trusted by its stat rows only: a file whose row is not known is read, and what is not what its
    name says is put aside.
    """

    def __init__(self, root: Path) -> None:
        """Open the store at `root`, made if it is not there. Raises StoreError."""
        self.root = root.absolute()
        self.layout = Layout(self.root)
        self._presence: Presence | None = None
        with explained(self.root):
            layout.prepare(self.layout)
        self.notes = Notes(self.root, self.write)
        self.contents = StatCache(self.notes)

    # -- reading ---------------------------------------------------------------------------------------------

    def find(self, key: Key) -> Record | None:
        """Return the record of a key with a whole artifact, or None. What can be mended is, the rest is put aside."""
        record = self.read(digest_of(key))
        if record is None or record.key != key:
            return None
        return record if self.is_whole(record) or self._mended(record) else None

    def read(self, key: Digest | str) -> Record | None:
        """Return the record filed under a key's digest, or None: also where it is not as it was written."""
        try:
            raw = unsealed(self.record_path(key).read_bytes())
            files = {name: (int(size), Digest(content)) for name, (size, content) in raw.pop("files").items()}
            raw.setdefault("job", raw["key"].get("step", ""))  # older records have it as a row
            record = Record(**raw, files=files)
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return None
        return record if record.digest == key else None

    def records(self) -> Iterator[Record]:
        """Yield every record, in the order of their digests."""
        for path in sorted(self.layout.records.glob("*.json")):
            record = self.read(path.stem)
            if record is not None:
                yield record

    def record_path(self, key: Digest | str) -> Path:
        """Return where the record of a key's digest lies."""
        return self.layout.records / f"{key}.json"

    def artifact_path(self, artifact: Digest | str) -> Path:
        """Return where an artifact lies. Its files are read-only and may share their content with others."""
        return self.layout.artifacts / artifact

    def log_path(self, key: Digest | str, *, failed: bool = False) -> Path:
        """Return where the log of a job's last run lies: of the one that made its record, or of a failed one."""
        return self.layout.logs / f"{key}{'.failed' if failed else ''}.log"

    def is_whole(self, record: Record) -> bool:
        """Say whether a record's artifact holds its files, as they were stored, and nothing else."""
        folder = self.artifact_path(record.artifact)
        try:
            return all(
                self._holds(folder / name, size, content) for name, (size, content) in record.files.items()
            ) and digest.walk(folder) == sorted(record.files)
        except OSError:
            return False

    def _holds(self, path: Path, size: int, content: Digest) -> bool:
        row = stat_row(path)
        if row[2] != size:
            return False
        if self.contents.known(row) == content:
            return True
        if self.contents.digest(path) != content:
            return False
        # Somebody was at this file, or at the pool's name for it: see that the pool has it still.
        with contextlib.suppress(OSError):
            self.offer(path, content)
        return True

    # -- writing ---------------------------------------------------------------------------------------------

    @property
    def presence(self) -> Presence:
        """This builder's presence, from the first time that it is asked for until `leave`. Raises StoreError."""
        if self._presence is None:
            with explained(self.root):
                sweep(self.layout.staging, self.layout.gate)
                self._presence = Presence(self.layout.staging, self.layout.gate)
        return self._presence

    def use(self, key: Digest) -> None:
        """Say that this builder relies on a record, before it is looked up: then nobody collects it."""
        with contextlib.suppress(OSError, StoreError):  # a full or read-only store can still be read
            self.presence.use(key)

    def leave(self) -> None:
        """Take this builder's things away and keep what was learned about files."""
        self.contents.save()
        if self._presence is not None:
            self._presence.leave()
            self._presence = None

    @cached_property
    def locks_work(self) -> bool:
        """Whether builders can keep out of each other's way on this file system."""
        try:
            return file_lock.work(self.layout.locks)
        except OSError:
            return True  # full or read-only: whoever wants to write will hear of that

    def try_lock(self, name: str) -> FileLock | None:
        """Take the lock of a key, or return None while another builder holds it. A dead holder frees it."""
        with explained(self.root):
            return file_lock.try_take(self.layout.locks / name)

    def commit(self, key: Key, made: Path, files: Files, *, report: Mapping[str, object], report_version: int = 1,
               seconds: float, peak_bytes: int, machine: Mapping[str, str], log: bytes = b"",
               job: str = "") -> Record:  # fmt: skip
        """Take `made`, which holds `files`, over as the artifact of `key`, and file the record. Raises StoreError.

        The record is written last: it never names what is not stored yet.
        """
        record = Record(
            key=key, artifact=output.tree(files), files=files, report=report, report_version=report_version,
            seconds=round(seconds, 3), peak_bytes=peak_bytes, machine=machine, made_at=round(time.time(), 3),
            log=digest.of_bytes(log) if log else "", job=job,
        )  # fmt: skip
        with explained(self.root), file_lock.hold(self.layout.gate, shared=True):
            self.keep_log(record.digest, log)
            for name, (_, content) in files.items():
                self._pool(made / name, content)
            self._publish(made, record)
            self.write(self.record_path(record.digest), sealed(record.fields()))
        return record

    def write(self, path: Path, data: bytes) -> None:
        """Replace a file of the store in one step. Raises OSError, StoreError."""
        self.presence.write(path, data)

    def keep_log(self, key: Digest, log: bytes, *, failed: bool = False) -> None:
        """Keep the log of a job's last run. Raises OSError."""
        self.log_path(key, failed=True).unlink(missing_ok=True)
        if log:
            self.write(self.log_path(key, failed=failed), log)
        elif not failed:
            self.log_path(key).unlink(missing_ok=True)

    def _pool(self, path: Path, content: Digest) -> None:
        """Make a staged file one with its content in `files/`, where each content is stored once. Raises OSError."""
        pooled = self.layout.pooled(content)
        if same_file(path, pooled):
            return
        if self._is(pooled, content):
            path.unlink()
            link_or_copy(pooled, path)
        else:
            self.offer(path, content)

    def lacks(self, content: Digest) -> bool:
        """Say whether the pool has no file of this content."""
        return not self.layout.pooled(content).exists()

    def offer(self, path: Path, content: Digest) -> bool:
        """Give the pool a whole file that it lacks, or has damaged; say whether it took it. Raises OSError."""
        pooled = self.layout.pooled(content)
        if same_file(path, pooled) or self._is(pooled, content):
            return False
        pooled.parent.mkdir(exist_ok=True)
        pooled.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # no hard links here, or another builder was first
            os.link(path, pooled)
            return True
        return False

    def _is(self, path: Path, content: Digest) -> bool:
        try:
            return self.contents.digest(path) == content
        except OSError:
            return False

    def _publish(self, made: Path, record: Record) -> None:
        place = self.artifact_path(record.artifact)
        if place.exists():
            if self.is_whole(record):
                return
            self.put_aside(place)
        try:
            os.rename(made, place)
        except OSError:
            # Another builder published the same content first: as good as ours.
            if not self.is_whole(record):
                raise

    def _mended(self, record: Record) -> bool:
        """Make a damaged artifact whole from what the pool has of it; where it cannot be, put it aside."""
        place = self.artifact_path(record.artifact)
        try:
            with self.presence.workplace() as folder, file_lock.hold(self.layout.gate, shared=True):
                fresh = folder / "fresh"
                fresh.mkdir()
                whole = all(
                    self._gathered(fresh / name, place / name, content) for name, (_, content) in record.files.items()
                )
                if place.exists():
                    self.put_aside(place)
                if whole:
                    os.rename(fresh, place)
                return whole
        except OSError:
            return False  # a store that cannot be written: the job is made again, or fails with the reason

    def _gathered(self, target: Path, stored: Path, content: Digest) -> bool:
        source = next((path for path in (self.layout.pooled(content), stored) if self._is(path, content)), None)
        if source is None:
            return False
        target.parent.mkdir(parents=True, exist_ok=True)
        link_or_copy(source, target)
        return True

    def put_aside(self, path: Path) -> Path:
        """Move what is damaged to `quarantine/`, where nothing reads it, and return its new place. Raises OSError."""
        self.layout.quarantine.mkdir(exist_ok=True)
        for number in range(1 << 20):
            place = self.layout.quarantine / f"{path.name}.{number}"
            if not place.exists():
                with contextlib.suppress(FileNotFoundError):
                    os.rename(path, place)
                return place
        shutil.rmtree(path)
        return path
