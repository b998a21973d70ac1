"""The store in `cache/`: artifacts by the digest of their content, and records by the digest of their key."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from engine import digest
from engine.digest import Digest
from engine.errors import StoreError
from engine.key import Key, digest_of
from engine.store import file_lock, layout, output, revocations
from engine.store.artifacts import Artifacts
from engine.store.disk import explained, remove
from engine.store.file_lock import FileLock, Holder
from engine.store.layout import Layout
from engine.store.ledger import Ledger
from engine.store.notes import Notes
from engine.store.output import Files
from engine.store.presence import Presence, sweep
from engine.store.record import Record
from engine.store.sealed import sealed, unsealed
from engine.store.stat_cache import StatCache
from engine.system import regular

if TYPE_CHECKING:
    from engine.errors import UserError
    from engine.events import Moved
    from engine.store.remote.settings import RemoteSettings
    from engine.store.remote.transfers import Counts

_ENVELOPES = "newest.batch"
"""The name of the ledger of envelopes. It comes behind those of earlier versions, whose names begin with digits."""


class RemoteTier(Protocol):
    """What builds ask of the remote behind a store: methods of `engine.store.remote.tier.Tier`, which describes them.

    That module imports this one. Only `bring` raises errors.
    """

    settings: RemoteSettings
    counts: Counts
    doubted: set[Digest]
    shown: str

    def watch(self, on_event: Callable[[Moved], None]) -> None: ...
    def pulse(self) -> bool: ...
    def find(self, key: Key) -> Record | None: ...
    def receive(self, key: Key, raw: bytes) -> Record | None: ...
    def look_again(self) -> None: ...
    def lack(self, key: Digest) -> UserError: ...
    def counts_for(self, record: Record) -> bool: ...
    def bring(self, record: Record) -> None: ...
    def gather(self, key: Key) -> None: ...
    def push(self, record: Record, *, earlier: Sequence[Record] = ()) -> None: ...
    def push_new(self, record: Record, *, earlier: Sequence[Record]) -> None: ...
    def wait(self) -> UserError | None: ...
    def summary(self) -> str: ...


class Store:
    """A cache directory.

    A program writes every file of the store to `staging/` first, and then renames the file into place.

    A stored file with a known stat row is trusted without reading it. A stored file with an unknown stat row is read;
    if its content does not match its digest, the file is moved to `quarantine/`.
    """

    def __init__(self, root: Path, *, afresh: bool = False) -> None:
        """Open the store at `root`; a missing store is made. Raises StoreError.

        Whose store it is is not checked: programs use `engine.store.opening.open_store`.
        If `afresh` is true, no stat row of an earlier build is trusted: every file is read once.
        """
        self.root = root.absolute()
        self.layout = Layout(self.root)
        self._presence: Presence | None = None
        with explained(self.root):
            layout.prepare(self.layout)
        self.tier: RemoteTier | None = None
        """The remote behind this store, if a command has joined one (`engine.store.opening`)."""
        self.flushes = True
        """Whether the outputs of jobs are flushed to the disk: later builds trust their stat rows."""
        self.notes = Notes(self.root, self.write)
        self.contents = StatCache(self.notes, afresh=afresh)
        self.artifacts = Artifacts(self.layout, self.contents)
        self.pushed = Ledger(self.root / "pushed", self.write)
        """For each remote, the keys of the records that it has, as far as this store knows."""
        self.envelopes = Ledger(self.layout.envelopes, self.write)
        """The envelopes of records: their signed statements."""

    # -- reading ---------------------------------------------------------------------------------------------

    def find(self, key: Key) -> Record | None:
        """Return the record of a key with an undamaged artifact, or None.

        A damaged artifact is mended from the pool where that is possible, and moved to `quarantine/` otherwise.
        The artifact of a record from a remote may still be there (`is_on_remote`); `bring` brings it.
        """
        record = self.read(digest_of(key))
        if record is not None and record.key == key and self._is_usable(record):
            return record
        return None if self.tier is None else self.tier.find(key)

    def _is_usable(self, record: Record) -> bool:
        if not self.counts(record):
            return False
        return (
            self.is_on_remote(record)
            or self.artifacts.is_whole(record)
            or (self._mend(record) and not self.is_on_remote(record))
        )

    def _mend(self, record: Record) -> bool:
        try:
            with self.presence.workplace() as folder, file_lock.hold(self.layout.gate, shared=True):
                return self.artifacts.mend(record, folder)
        except OSError:
            return False  # the store cannot be written: the job runs again, or fails with the reason

    def counts(self, record: Record) -> bool:
        """Say whether a record may still be used: an own one, or one from a remote whose key is not revoked."""
        if not record.origin:
            return True
        if record.origin.get("signer") in self._revoked:
            return False
        return self.tier is None or self.tier.counts_for(record)

    @cached_property
    def _revoked(self) -> frozenset[str]:
        return revocations.revoked()

    def is_on_remote(self, record: Record) -> bool:
        """Say whether the artifact of a record from a remote is still only there."""
        return bool(record.origin) and not os.path.lexists(f"{self.layout.artifacts}/{record.artifact}")

    def bring(self, record: Record) -> bool:
        """Bring an artifact that is still at the remote; return False, and forget the record, if that fails."""
        if not self.is_on_remote(record):
            return True
        try:
            if self.tier is not None:
                self.tier.bring(record)
                return True
        except (StoreError, OSError):
            pass
        self.forget(record.digest)
        return False

    def forget(self, key: Digest) -> None:
        """Remove the record of a key, if there is one. Raises StoreError."""
        with self.adding():
            remove(self.record_path(key))

    def read(self, key: Digest | str) -> Record | None:
        """Return the record filed under a key's digest; None for a missing or damaged record."""
        try:
            raw = unsealed(regular.read(f"{self.layout.records}/{key}.json"))
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

    def leave(self, *, keep: bool = True) -> None:
        """Remove this builder's presence and, unless `keep` is false, save the digests of files."""
        if keep:
            self.contents.save()
        if self._presence is not None:
            self._presence.leave()
            self._presence = None

    @cached_property
    def has_file_locks(self) -> bool:
        """Whether file locks work on the store's file system."""
        try:
            return file_lock.are_supported(self.layout.locks)
        except OSError:
            return True  # a full or read-only store: the first write reports the error

    def try_lock(self, name: str, *, task: str = "a job") -> FileLock | None:
        """Take the lock of a key, or return None while another living builder holds it."""
        with explained(self.root):
            return file_lock.try_take(self.layout.locks / name, task=task)

    def holder_of(self, name: str) -> Holder | None:
        """Return the process that holds the lock of a key; None if the process has not signed the lock."""
        return file_lock.holder_of(self.layout.locks / name)

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
        with self.adding():
            self.keep_log(record.digest, log)
            self._keep_trace(record, trace)
            self.artifacts.add(folder, record)
            self.write(self.record_path(record.digest), sealed(record.fields()))
        return record

    def adopt(self, envelopes: Mapping[Digest, bytes], records: Sequence[Record]) -> None:
        """File records from a remote with their envelopes; the caller is `adding`. Raises OSError, StoreError."""
        self.keep_envelopes(envelopes)
        for record in records:
            self.write(self.record_path(record.digest), sealed(record.fields()))

    @contextlib.contextmanager
    def adding(self) -> Iterator[None]:
        """Keep collections out inside the `with` block. Raises StoreError."""
        with explained(self.root), file_lock.hold(self.layout.gate, shared=True):
            yield

    def restore_small(self, record: Record, contents: Mapping[str, bytes]) -> None:
        """Add a record's artifact from its files' contents; the caller is `adding`. Raises OSError, StoreError."""
        with self.presence.workplace() as folder:
            for name, content in contents.items():
                path = folder / name
                if "/" in name:
                    path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
                path.chmod(output.READ_ONLY)
            self.artifacts.add(folder, record)

    def restore(self, record: Record, folder: Path) -> None:
        """Move the files of a record's artifact, which lie in `folder`, into the store. Raises StoreError."""
        with self.adding():
            self.artifacts.add(folder, record)

    def keep_pushed(self, envelopes: Mapping[Digest, bytes], remote: str) -> None:
        """Note that a remote has the records of these keys, with the envelopes that it has. Raises StoreError."""
        with self.adding():
            self.keep_envelopes(envelopes)
            self.pushed.add(dict.fromkeys(envelopes, b""), _ledger_of(remote))

    def keep_envelopes(self, envelopes: Mapping[Digest, bytes]) -> None:
        """Keep the envelopes of records. The caller is `adding`. Raises OSError."""
        self.envelopes.add(envelopes, _ENVELOPES)

    def has_pushed(self, key: Digest, remote: str) -> bool:
        """Say whether this store has pushed the record of a key to a remote."""
        return self.pushed.has(key, _ledger_of(remote))

    def write(self, path: Path | str, data: bytes) -> None:
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


def _ledger_of(remote: str) -> str:
    return f"{digest.of_bytes(remote.encode())}.list"
