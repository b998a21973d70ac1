"""Look after a remote: check each record and blob (`cache verify --remote`), and remove what is old (`cache gc`)."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from engine.store.remote import envelope, statement
from engine.store.remote.attempts import PatientPlace
from engine.store.remote.background import each
from engine.store.remote.blobs import Blob
from engine.store.remote.objects import (
    BLOBS,
    MACHINES,
    PROBE,
    RECORDS,
    Entry,
    MissingError,
    RefusedError,
    RemoteError,
    record_name,
)
from engine.store.remote.statement import LARGEST_RECORD, admitted
from engine.store.remote.trust import Trust


@dataclass(frozen=True)
class RemoteFault:
    """An object of a remote that is not what it should be."""

    name: str
    kind: str
    why: str


@dataclass
class RemoteVerdict:
    """The findings of a check of a remote (`recipe cache verify --remote`)."""

    faults: list[RemoteFault] = field(default_factory=list)
    records: int = 0
    blobs: int = 0
    """The number of blobs that the records name."""
    bytes: int = 0
    """The bytes of these blobs at the remote."""
    unnamed: int = 0
    """The number of blobs that no used record names."""

    @property
    def kinds(self) -> Counter[str]:
        """How many faults there are of each kind."""
        return Counter(fault.kind for fault in self.faults)


async def check(place: PatientPlace, trust: Trust, *, deep: bool) -> RemoteVerdict:
    """Check each record as a build would, and that each of its blobs is there with its size. Changes nothing.

    With `deep`, every blob is read and held against its SHA-256. Raises RemoteError.
    """
    return await _Check(place, trust, deep=deep).run()


class _Check:
    def __init__(self, place: PatientPlace, trust: Trust, *, deep: bool) -> None:
        self._place = place
        self._trust = trust
        self._deep = deep
        self._verdict = RemoteVerdict()
        self._named: dict[str, Blob] = {}

    async def run(self) -> RemoteVerdict:
        # Records come first: a record that is pushed during the check has its blobs in the later list.
        verdict = self._verdict
        records = await self._place.listed(RECORDS)
        await each(records, self._record)
        sizes = {entry.name: entry.size for entry in await self._place.listed(BLOBS)}
        verdict.blobs, verdict.bytes = len(self._named), sum(blob.stored for blob in self._named.values())
        verdict.unnamed = len(sizes.keys() - self._named.keys())
        present = []
        for name, blob in self._named.items():
            if name not in sizes:
                self._fault(name, "missing blob", "a record names the blob, and the remote lacks it")
            elif sizes[name] != blob.stored:
                self._fault(name, "wrong size", f"the blob has {sizes[name]} bytes, its record says {blob.stored}")
            else:
                present.append(name)
        await self._read(present if self._deep else ())
        verdict.faults.sort(key=lambda fault: (fault.name, fault.kind))
        return verdict

    async def _record(self, entry: Entry) -> None:
        try:
            raw = await self._place.read(entry.name, most=LARGEST_RECORD)
            read = admitted(raw, None, self._trust)
        except MissingError:
            return  # removed meanwhile
        except RefusedError as error:
            self._fault(entry.name, error.kind, error.what)
            return
        if record_name(read.record.key) != entry.name:
            self._fault(entry.name, "other key", "the record under this name was made for another key")
            return
        self._verdict.records += 1
        self._named.update((blob.name, blob) for blob in read.stored_blobs)

    async def _read(self, present: Iterable[str]) -> None:
        async def one(name: str) -> None:
            blob = self._named[name]
            try:
                blob.opened(await self._place.read(name, most=blob.stored))
            except MissingError:
                self._fault(name, "missing blob", "the blob was removed during the check")
            except RefusedError as error:
                self._fault(name, error.kind, error.what)

        await each(present, one)

    def _fault(self, name: str, kind: str, why: str) -> None:
        self._verdict.faults.append(RemoteFault(name, kind, why.removeprefix(f"{kind}: ")))


GRACE = 86400.0
"""Seconds: a push may go on for so long between the first blob that it finds or writes and its record."""
_PROBE_BYTES = 16


@dataclass
class RemoteCollected:
    """What was removed from a remote, or would be removed without `dry_run`."""

    records: int = 0
    lists: int = 0
    blobs: int = 0
    bytes: int = 0
    left_records: int = 0
    left_blobs: int = 0
    left_bytes: int = 0
    unreadable: int = 0
    """Records that cannot be read. While there are any, all blobs stay: nobody knows which of them they name."""

    @property
    def share(self) -> float:
        """The removed share of the records or of the bytes, whichever is larger: from 0 to 1."""
        records = self.records / max(1, self.records + self.left_records)
        return max(records, self.bytes / max(1, self.bytes + self.left_bytes))


async def collect(place: PatientPlace, *, older_than: float, dry_run: bool, grace: float = GRACE) -> RemoteCollected:
    """Remove the records and lists that were written more than `older_than` seconds ago, and the blobs of no record.

    A push relies on blobs that are younger than half of the age, and then writes its record. So a blob goes only if it
    is older than that half and `grace` seconds. The records are read after the blobs were listed: a record that was
    written meanwhile counts. Times are those of the remote's clock. Raises RemoteError.
    """
    return await _Expiry(place, older_than, grace, dry_run=dry_run).run()


class _Expiry:
    def __init__(self, place: PatientPlace, older_than: float, grace: float, *, dry_run: bool) -> None:
        self._place = place
        self._older_than = older_than
        self._grace = grace
        self._dry_run = dry_run
        self._result = RemoteCollected()
        self._now = 0.0

    async def run(self) -> RemoteCollected:
        result = self._result
        records = await self._place.listed(RECORDS)
        self._now = await self._clock()
        old = self._written_before(records, self._older_than)
        await self._remove(old)
        result.records = len(old)
        lists = self._written_before(await self._place.listed(MACHINES), self._older_than)
        await self._remove(lists)
        result.lists = len(lists)
        await self._blobs({entry.name for entry in old})
        return result

    async def _blobs(self, gone: set[str]) -> None:
        result = self._result
        blobs = await self._place.listed(BLOBS)
        records = [entry for entry in await self._place.listed(RECORDS) if entry.name not in gone]
        named = await self._named(records)
        unnamed = [entry for entry in blobs if entry.name not in named]
        old = self._written_before(unnamed, self._older_than / 2 + self._grace)
        if result.unreadable:
            old = []
        await self._remove(old)
        result.blobs, result.bytes = len(old), _size(old)
        result.left_records = len(records)
        result.left_blobs, result.left_bytes = len(blobs) - len(old), _size(blobs) - _size(old)

    async def _clock(self) -> float:
        """Return the time of the remote's clock. This writes a few bytes: who cannot write cannot collect."""
        await self._place.write(PROBE, os.urandom(_PROBE_BYTES))
        entry = await self._place.entry(PROBE)
        if entry is None:
            raise RemoteError(f"{self._place.shown}: what was written is not there")
        return entry.modified

    async def _named(self, records: Iterable[Entry]) -> set[str]:
        """Return the names of the blobs that records name. Whose records they are does not matter."""
        every: set[str] = set()

        async def one(entry: Entry) -> None:
            try:
                raw = await self._place.read(entry.name, most=LARGEST_RECORD)
                read = statement.read(envelope.decode(raw).payload)
            except MissingError:
                return  # removed meanwhile
            except RefusedError:
                self._result.unreadable += 1
                return
            every.update(blob.name for blob in read.stored_blobs)

        await each(records, one)
        return every

    async def _remove(self, entries: Iterable[Entry]) -> None:
        if self._dry_run:
            return

        async def one(entry: Entry) -> None:
            await self._place.remove(entry.name)

        await each(entries, one)

    def _written_before(self, entries: Iterable[Entry], age: float) -> list[Entry]:
        return [entry for entry in entries if self._now - entry.modified > age]


def _size(entries: Sequence[Entry]) -> int:
    return sum(entry.size for entry in entries)
