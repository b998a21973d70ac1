"""Check a remote: every record's signature, and every blob that a record names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from engine.store.remote import names
from engine.store.remote.attempts import Attempts
from engine.store.remote.blobs import Blob
from engine.store.remote.errors import MissingError, RefusedError
from engine.store.remote.guard import GuardedPlace
from engine.store.remote.many import each, listed
from engine.store.remote.objects import Entry
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


async def check(place: GuardedPlace, attempts: Attempts, trust: Trust, *, deep: bool) -> RemoteVerdict:
    """Check each record as a build would, and that each of its blobs is there with its size. Changes nothing.

    With `deep`, every blob is read and held against its SHA-256. Raises RemoteError.
    """
    return await _Check(place, attempts, trust, deep=deep).run()


class _Check:
    def __init__(self, place: GuardedPlace, attempts: Attempts, trust: Trust, *, deep: bool) -> None:
        self._place = place
        self._attempts = attempts
        self._trust = trust
        self._deep = deep
        self._verdict = RemoteVerdict()
        self._named: dict[str, Blob] = {}

    async def run(self) -> RemoteVerdict:
        # Records come first: a record that is pushed during the check has its blobs in the later list.
        verdict = self._verdict
        records = await listed(self._place, self._attempts, names.RECORDS)
        await each(records, self._record)
        sizes = {entry.name: entry.size for entry in await listed(self._place, self._attempts, names.BLOBS)}
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
            raw = await self._attempts.make(lambda: self._place.read(entry.name, most=LARGEST_RECORD))
            read = admitted(raw, None, self._trust)
        except MissingError:
            return  # removed meanwhile
        except RefusedError as error:
            self._fault(entry.name, error.kind, error.what)
            return
        if names.record(read.record.key) != entry.name:
            self._fault(entry.name, "other key", "the record under this name was made for another key")
            return
        self._verdict.records += 1
        blobs = (blob for file in read.files.values() for blob in file.blobs if blob.inline is None)
        self._named.update((names.blob(blob), blob) for blob in blobs)

    async def _read(self, present: Iterable[str]) -> None:
        async def one(name: str) -> None:
            blob = self._named[name]
            try:
                blob.opened(await self._attempts.make(lambda: self._place.read(name, most=blob.stored)))
            except MissingError:
                self._fault(name, "missing blob", "the blob was removed during the check")
            except RefusedError as error:
                self._fault(name, error.kind, error.what)

        await each(present, one)

    def _fault(self, name: str, kind: str, why: str) -> None:
        self._verdict.faults.append(RemoteFault(name, kind, why.removeprefix(f"{kind}: ")))
