"""Look after a remote: check each record and blob (`cache verify --remote`), and remove what is old (`cache gc`)."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from engine.store.remote import envelope, statement
from engine.store.remote.attempts import RetryingRemote
from engine.store.remote.background import each
from engine.store.remote.blobs import Blob
from engine.store.remote.objects import (
    BLOBS,
    MACHINES,
    PROBE,
    RECORDS,
    RELEASES,
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


async def check(remote: RetryingRemote, trust: Trust, *, deep: bool) -> RemoteVerdict:
    """Check each record as a build would, and that each of its blobs is there with its size. Changes nothing.

    With `deep`, every blob is read and held against its SHA-256. Raises RemoteError.
    """
    verdict = RemoteVerdict()
    named: dict[str, Blob] = {}

    def note(name: str, kind: str, why: str) -> None:
        verdict.faults.append(RemoteFault(name, kind, why.removeprefix(f"{kind}: ")))

    async def check_record(entry: Entry) -> None:
        try:
            raw = await remote.read(entry.name, most=LARGEST_RECORD)
            read = admitted(raw, None, trust)
        except MissingError:
            return  # removed meanwhile
        except RefusedError as error:
            note(entry.name, error.kind, error.what)
            return
        if not entry.name.startswith(RELEASES) and record_name(read.record.key) != entry.name:
            note(entry.name, "other key", "the record under this name was made for another key")
            return
        verdict.records += 1
        named.update((blob.name, blob) for blob in read.stored_blobs)

    async def check_bytes(name: str) -> None:
        if wrong := await _fault_of_bytes(remote, named[name]):
            note(name, *wrong)

    # Records come first: a record that is pushed during the check has its blobs in the later list.
    await each([*await remote.listed(RECORDS), *await remote.listed(RELEASES)], check_record)
    sizes = {entry.name: entry.size for entry in await remote.listed(BLOBS)}
    verdict.blobs, verdict.bytes = len(named), sum(blob.stored for blob in named.values())
    verdict.unnamed = len(sizes.keys() - named.keys())
    present = []
    for name, blob in named.items():
        if wrong := _fault_of_size(sizes.get(name), blob.stored):
            note(name, *wrong)
        else:
            present.append(name)
    await each(present if deep else (), check_bytes)
    verdict.faults.sort(key=lambda fault: (fault.name, fault.kind))
    return verdict


def _fault_of_size(size: int | None, stored: int) -> tuple[str, str] | None:
    """Return the kind of the fault of a blob of `size` bytes, and why; None for one of the size in its record."""
    if size is None:
        return "missing blob", "a record names the blob, and the remote lacks it"
    return None if size == stored else ("wrong size", f"the blob has {size} bytes, its record says {stored}")


async def _fault_of_bytes(remote: RetryingRemote, blob: Blob) -> tuple[str, str] | None:
    """Read a blob, and return the kind of its fault, and why; None for one with the promised bytes."""
    try:
        blob.opened(await remote.read(blob.name, most=blob.stored))
    except MissingError:
        return "missing blob", "the blob was removed during the check"
    except RefusedError as error:
        return error.kind, error.what
    return None


GRACE = 86400.0
"""Seconds: a push may go on for so long between the first blob that it finds or writes and its record."""
_PROBE_BYTES = 16
_SAME = 1.0
"""Seconds by which two answers about one object may differ: S3 has milliseconds in listings alone."""


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


async def remove_unless_renewed(remote: RetryingRemote, entry: Entry) -> bool:
    """Remove an object, unless a push has written it again since it was listed; return whether it was removed."""
    current = await remote.entry(entry.name)
    if current is None or current.modified >= entry.modified + _SAME:
        return False
    await remote.remove(entry.name)
    return True


async def collect(remote: RetryingRemote, *, older_than: float, dry_run: bool, grace: float = GRACE) -> RemoteCollected:
    """Remove the records and lists that were written more than `older_than` seconds ago, and the blobs of no record.

    Published packages and their blobs stay.

    A push relies on blobs that are younger than half of the age, and then writes its record. So a blob goes only if it
    is older than that half and `grace` seconds. The records are read after the blobs were listed: a record that was
    written meanwhile counts. Times are those of the remote's clock. Raises RemoteError.
    """
    result = RemoteCollected()

    async def remove(entries: Sequence[Entry], age: float) -> list[Entry]:
        """Remove the objects that are older than an age, and return them."""
        old = [entry for entry in entries if now - entry.modified > age]
        if not dry_run:
            await each(old, lambda entry: remove_unless_renewed(remote, entry))
        return old

    records = await remote.listed(RECORDS)
    now = await _clock(remote)
    old_records = await remove(records, older_than)
    result.records = len(old_records)
    result.lists = len(await remove(await remote.listed(MACHINES), older_than))
    blobs = await remote.listed(BLOBS)
    gone = set(old_records)
    left = [entry for entry in await remote.listed(RECORDS) if entry not in gone]
    named, result.unreadable = await _named_blobs(remote, [*left, *await remote.listed(RELEASES)])
    unnamed = [] if result.unreadable else [entry for entry in blobs if entry.name not in named]
    old_blobs = await remove(unnamed, older_than / 2 + grace)
    result.blobs, result.bytes = len(old_blobs), sum(entry.size for entry in old_blobs)
    result.left_records, result.left_blobs = len(left), len(blobs) - len(old_blobs)
    result.left_bytes = sum(entry.size for entry in blobs) - result.bytes
    return result


async def _clock(remote: RetryingRemote) -> float:
    """Return the time of the remote's clock. This writes a few bytes: who cannot write cannot collect."""
    await remote.write(PROBE, os.urandom(_PROBE_BYTES))
    entry = await remote.entry(PROBE)
    if entry is None:
        raise RemoteError(f"{remote.shown}: what was written is not there")
    return entry.modified


async def _named_blobs(remote: RetryingRemote, records: Sequence[Entry]) -> tuple[set[str], int]:
    """Return the names of the blobs that records name, whosever records they are; and how many cannot be read."""
    named: set[str] = set()
    unreadable: list[Entry] = []

    async def read(entry: Entry) -> None:
        try:
            raw = await remote.read(entry.name, most=LARGEST_RECORD)
            named.update(blob.name for blob in statement.read(envelope.decode(raw).payload).stored_blobs)
        except MissingError:
            return  # removed meanwhile
        except RefusedError:
            unreadable.append(entry)

    await each(records, read)
    return named, len(unreadable)
