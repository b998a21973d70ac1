"""Garbage collection of a store: remove records by reachability, age and total size, while builds may run."""

from __future__ import annotations

import contextlib
import os
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from engine import digest, snapshot
from engine.digest import Digest
from engine.errors import StoreError
from engine.store import file_lock, heads, presence, releases
from engine.store.disk import entries
from engine.store.record import Record
from engine.store.store import Store
from engine.system import regular


@dataclass(frozen=True)
class CollectionLimits:
    """The limits of a collection. A limit with the value None does not restrict the collection."""

    reach: Collection[Digest] | None = None
    """Keys whose records the collection keeps, however old the records are.

    If neither size nor age is limited, the collection removes every record whose key is not in `reach`.
    """
    max_bytes: int | None = None
    older_than_seconds: float | None = None


@dataclass
class Collected:
    """The records and files that a collection removed, or would remove without `dry_run`."""

    records: list[tuple[Record, float]] = field(default_factory=list)
    """Removed records, each with the time of its last use in seconds since the epoch."""
    bytes: int = 0
    leftovers: int = 0
    """The number of removed files and folders that no record names, including the contents of `quarantine/`."""
    in_use: int = 0
    """The number of records that the limits would remove and that stay because a running build uses them."""
    left_records: int = 0
    left_bytes: int = 0

    @property
    def share(self) -> float:
        """The removed share of the store's records or of its bytes, whichever is larger: from 0 to 1."""
        records = len(self.records) / max(1, len(self.records) + self.left_records)
        return max(records, self.bytes / max(1, self.bytes + self.left_bytes))


def collect(store: Store, limits: CollectionLimits, *, dry_run: bool) -> Collected:
    """Remove the records that `limits` does not allow to stay.

    Raises StoreError on a file system without locks, where a collection cannot see running builds.
    """
    if not store.has_file_locks:
        raise StoreError(
            f"nothing can be collected from {store.root}: its file system has no working locks",
            ["a running build could lose what it is using"],
            "build into a store on a local disk; or remove this one whole while nobody uses it",
        )
    try:
        return _Collection(store, limits, dry_run=dry_run).run()
    finally:
        store.leave()


class _Collection:
    def __init__(self, store: Store, limits: CollectionLimits, *, dry_run: bool) -> None:
        self.store = store
        self.limits = limits
        self.dry_run = dry_run
        self.result = Collected()

    def run(self) -> Collected:
        # The first use of `presence` takes the gate, so `presence` is used before this collection holds the gate alone.
        staging = self.store.presence.folder.parent
        self.result.leftovers += presence.sweep(staging, self.store.layout.gate)
        records = {record.digest: record for record in self.store.records()}
        last = last_uses(self.store, records)
        using = presence.used(staging)
        chosen = _choice(records, last, self.limits, self._released())
        self.result.in_use = len(using.intersection(chosen))
        chosen = [key for key in chosen if key not in using]
        if not self.dry_run:
            chosen = self._unrecord(chosen, staging)
        self.result.records = [(records[key], last[key]) for key in chosen]
        left = {key: record for key, record in records.items() if key not in set(chosen)}
        self.result.left_records = len(left)
        self.result.left_bytes = sum(contents(left.values()).values())
        self.result.bytes = sum(contents(records.values()).values()) - self.result.left_bytes
        if self.dry_run:
            self.result.leftovers += sum(1 for _ in self._leftovers(left))
        else:
            self._clean(left)
        return self.result

    def _released(self) -> set[str]:
        """Return the keys of the packages that were published and not let go: no limit removes them."""
        return {release.key for release in releases.every(self.store)}

    def _unrecord(self, chosen: Sequence[Digest], staging: Path) -> list[Digest]:
        """Remove the records of the chosen keys, and put back each record that a build has meanwhile named as in use.

        A build lists a record as in use before the build reads the record. After the removal, the collection reads the
        builds' lists of records in use, so it notices each removed record that a build has read.
        """
        raw = {}
        with file_lock.hold(self.store.layout.gate, task="cache gc"):
            # First the notes, then the records: `verify` reports a missing record that a note names.
            heads.forget(self.store, set(chosen))
            for key in chosen:
                path = self.store.record_path(key)
                with contextlib.suppress(FileNotFoundError):
                    raw[key] = regular.read(path)
                    path.unlink()
            named = (self._released() | presence.used(staging)).intersection(raw)
            for key in raw.keys() & named:
                self.store.write(self.store.record_path(key), raw[key])
        self.result.in_use += len(named)
        return [key for key in raw if key not in named]

    def _clean(self, known: Mapping[Digest, Record]) -> None:
        """Remove the files and folders of the store that no record names any more."""
        with file_lock.hold(self.store.layout.gate, task="cache gc"):
            # Builds may have added records meanwhile. While the collection holds the gate alone, builds add no records.
            now = {
                path.stem: known.get(Digest(path.stem)) or self.store.read(path.stem)
                for path in self.store.layout.records.glob("*.json")
            }
            for path in list(self._leftovers({Digest(k): record for k, record in now.items() if record is not None})):
                self.result.leftovers += 1
                if path.is_dir() and not path.is_symlink():
                    # The folder is removed in `staging/`, so that a killed collection leaves no half of it.
                    with self.store.presence.workplace() as away:
                        os.rename(path, away / path.name)
                else:
                    path.unlink(missing_ok=True)
            self.store.pushed.forget_all_but(now)
            self.store.envelopes.forget_all_but(now)
            for folder in self.store.layout.files.iterdir():
                with contextlib.suppress(OSError):
                    folder.rmdir()

    def _leftovers(self, records: Mapping[Digest, Record]) -> Iterator[Path]:
        """Yield the files and folders that no record names; artifacts come before files of the pool."""
        named = {record.artifact for record in records.values()}
        at = self.store.layout
        yield from (path for path in at.artifacts.iterdir() if path.name not in named)
        stored = contents(records.values())
        yield from (at.files / name for name in digest.walk(at.files) if name.rpartition("/")[2] not in stored)
        runs = heads.runs(self.store)
        yield from (path for path in at.logs.iterdir() if path.name.partition(".")[0] not in records.keys() | runs)
        traces = {f"{record.trace}.json" for record in records.values()}
        yield from (path for path in entries(at.traces) if path.name not in traces)
        yield from entries(at.quarantine)
        if self.limits.older_than_seconds is not None:
            yield from entries(at.incoming)
            before = time.time() - self.limits.older_than_seconds
            yield from (path for path in entries(at.kept) if path.stat().st_mtime < before)
        yield from (path for path in at.snapshots.iterdir() if not self._is_good(path))
        yield from (path for path in at.plans.iterdir() if not self._is_good(at.snapshots / path.name))

    def _is_good(self, path: Path) -> bool:
        """Say whether a snapshot is undamaged and all files that the snapshot watches exist."""
        try:
            return all(map(os.path.exists, _watched(path)))
        except snapshot.UNREADABLE:
            return False


def last_uses(store: Store, records: Mapping[Digest, Record]) -> dict[Digest, float]:
    """Return when each record was last used, in seconds since the epoch.

    That is when a job made it, when a build found it, and when an up-to-date build answered from a snapshot with it.
    """
    now = time.time()
    last = {key: record.made_at for key, record in records.items()}
    for key, used in heads.uses(store):
        last[key] = max(last.get(key, 0.0), used)
    for path in store.layout.snapshots.iterdir():
        with contextlib.suppress(*snapshot.UNREADABLE):
            used = path.stat().st_mtime
            for name in _watched(path):
                key = Digest(os.path.basename(name).removesuffix(".json"))
                if key in last:
                    last[key] = max(last[key], used)
    return {key: min(last[key], now) for key in records}  # a clock that ran ahead must not keep a record for ever


def _watched(path: Path) -> Sequence[str]:
    """Return the files whose changes a snapshot watches. Raises an error of `snapshot.UNREADABLE`."""
    names: Sequence[str] = snapshot.read(str(path))["watched"][0]
    return names


def _choice(
    records: Mapping[Digest, Record], last: Mapping[Digest, float], limits: CollectionLimits, released: set[str]
) -> list[Digest]:
    """Return the keys of the records that the collection is to remove, the longest unused first."""
    reach = released.union(limits.reach or ())
    oldest = sorted((key for key in records if key not in reach), key=lambda key: (last[key], key))
    if limits.older_than_seconds is None and limits.max_bytes is None:
        return oldest if limits.reach is not None else []
    chosen = []
    if limits.older_than_seconds is not None:
        before = time.time() - limits.older_than_seconds
        chosen = [key for key in oldest if last[key] < before]
    if limits.max_bytes is not None:
        chosen += _too_much(records, [key for key in oldest if key not in set(chosen)], set(chosen), limits.max_bytes)
    return chosen


def _too_much(
    records: Mapping[Digest, Record], oldest: Sequence[Digest], gone: set[Digest], max_bytes: int
) -> list[Digest]:
    """Return the keys of the records, the longest unused first, whose removal brings the store below `max_bytes`.

    A file that several records share frees its space with the last of these records.
    """
    uses = Counter[Digest]()
    sizes: dict[Digest, int] = {}
    for key, record in records.items():
        if key not in gone:
            for size, content in record.files.values():
                uses[content] += 1
                sizes[content] = size
    total = sum(sizes.values())
    chosen = []
    for key in oldest:
        if total <= max_bytes:
            break
        chosen.append(key)
        for _, content in records[key].files.values():
            uses[content] -= 1
            if uses[content] == 0:
                total -= sizes[content]
    return chosen


def contents(records: Iterable[Record]) -> dict[Digest, int]:
    """Return the size in bytes of each file content in the records by its digest; equal content is stored once."""
    return {content: size for record in records for size, content in record.files.values()}
