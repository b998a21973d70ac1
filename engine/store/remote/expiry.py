"""Remove what is old from a remote: first the records, then the blobs that no record names."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from engine.store.remote import envelope, names, statement
from engine.store.remote.attempts import Attempts
from engine.store.remote.errors import MissingError, RefusedError, RemoteError
from engine.store.remote.guard import GuardedPlace
from engine.store.remote.many import each, listed
from engine.store.remote.objects import Entry
from engine.store.remote.statement import LARGEST_RECORD

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


async def collect(
    place: GuardedPlace, attempts: Attempts, *, older_than: float, dry_run: bool, grace: float = GRACE
) -> RemoteCollected:
    """Remove the records and lists that were written more than `older_than` seconds ago, and the blobs of no record.

    A push relies on blobs that are younger than half of the age, and then writes its record. So a blob goes only if it
    is older than that half and `grace` seconds. The records are read after the blobs were listed: a record that was
    written meanwhile counts. Times are those of the remote's clock. Raises RemoteError.
    """
    return await _Expiry(place, attempts, older_than, grace, dry_run=dry_run).run()


class _Expiry:
    def __init__(
        self, place: GuardedPlace, attempts: Attempts, older_than: float, grace: float, *, dry_run: bool
    ) -> None:
        self._place = place
        self._attempts = attempts
        self._older_than = older_than
        self._grace = grace
        self._dry_run = dry_run
        self._result = RemoteCollected()
        self._now = 0.0

    async def run(self) -> RemoteCollected:
        result = self._result
        records = await self._listed(names.RECORDS)
        self._now = await self._clock()
        old = self._written_before(records, self._older_than)
        await self._remove(old)
        result.records = len(old)
        lists = self._written_before(await self._listed(names.MACHINES), self._older_than)
        await self._remove(lists)
        result.lists = len(lists)
        await self._blobs({entry.name for entry in old})
        return result

    async def _blobs(self, gone: set[str]) -> None:
        result = self._result
        blobs = await self._listed(names.BLOBS)
        records = [entry for entry in await self._listed(names.RECORDS) if entry.name not in gone]
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
        await self._attempts.make(lambda: self._place.write(names.PROBE, os.urandom(_PROBE_BYTES)))
        entry = await self._attempts.make(lambda: self._place.entry(names.PROBE))
        if entry is None:
            raise RemoteError(f"{self._place.shown}: what was written is not there")
        return entry.modified

    async def _listed(self, folder: str) -> list[Entry]:
        return await listed(self._place, self._attempts, folder)

    async def _named(self, records: Iterable[Entry]) -> set[str]:
        """Return the names of the blobs that records name. Whose records they are does not matter."""
        every: set[str] = set()

        async def one(entry: Entry) -> None:
            try:
                raw = await self._attempts.make(lambda: self._place.read(entry.name, most=LARGEST_RECORD))
                read = statement.read(envelope.decode(raw).payload)
            except MissingError:
                return  # removed meanwhile
            except RefusedError:
                self._result.unreadable += 1
                return
            every.update(names.blob(blob) for file in read.files.values() for blob in file.blobs)

        await each(records, one)
        return every

    async def _remove(self, entries: Iterable[Entry]) -> None:
        if self._dry_run:
            return

        async def one(entry: Entry) -> None:
            await self._attempts.make(lambda: self._place.remove(entry.name))

        await each(entries, one)

    def _written_before(self, entries: Iterable[Entry], age: float) -> list[Entry]:
        return [entry for entry in entries if self._now - entry.modified > age]


def _size(entries: Sequence[Entry]) -> int:
    return sum(entry.size for entry in entries)
