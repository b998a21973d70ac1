"""The remote tier of a store: records that this machine lacks come from the remote, and new records go there."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from engine.digest import Digest
from engine.errors import UserError
from engine.events import Moved
from engine.key import Key, digest_of
from engine.store.record import Record
from engine.store.remote import attempts, machines, remotes
from engine.store.remote.attempts import RetryingRemote
from engine.store.remote.background import Background, Batches, each
from engine.store.remote.blobs import Blob
from engine.store.remote.downloads import Download
from engine.store.remote.guard import GuardedRemote
from engine.store.remote.objects import (
    RECORDS,
    Entry,
    MissingError,
    RefusedError,
    RemoteError,
    UntrustedError,
    list_name,
    record_name,
)
from engine.store.remote.pushes import Pushes
from engine.store.remote.settings import RemoteSettings
from engine.store.remote.statement import LARGEST_RECORD, Statement, admitted, judged
from engine.store.remote.transfers import Counts, Moving, reporter
from engine.store.store import Store

_MISS_SECONDS = 5.0
_BATCH = 32
"""The most records that are added to the store at a time."""
_SMALL = 1 << 16
"""The bytes of an envelope up to which it is opened between two requests."""
T = TypeVar("T")
_Opened = tuple[Statement, str, bytes]
"""The statement of an envelope, the identifier of the key that signed it, and the envelope."""


class Tier:
    """A remote behind a store. A build that uses it never fails because of it.

    Looking up raises nothing: a remote that is down, slow or wrong counts as one without the record.
    """

    def __init__(
        self, store: Store, settings: RemoteSettings, *, brief: bool, remote: GuardedRemote | None = None
    ) -> None:
        """With `brief`, the remote is left alone after a few lost seconds, as a build needs it. Raises UsageError.

        `remote` replaces the one of the settings' URL, for example by an archive.
        """
        self.settings = settings
        self._store = store
        self.counts = Counts()
        self.attempts = attempts.brief() if brief else attempts.patient()
        reading = remote or remotes.remote_of(settings.url, environ=settings.environ, writes=False)
        writing = remote or remotes.remote_of(settings.url, environ=settings.environ, writes=True)
        self._remotes = {id(each): each for each in (reading, writing)}
        self._background = Background()
        self._coming, self._going = Moving("in"), Moving("out")
        self._remote = RetryingRemote(reading, self.attempts)
        self._download = Download(store, self._remote, on_bytes=self.counts.receive, moving=self._coming)
        self._missed: dict[Digest, float] = {}
        """When a record was missing: the builder looks twice, before and after it takes the lock of a key."""
        self.doubted: set[Digest] = set()
        """Keys of which the remote could not give something that it should have: nothing that it has of them is used,
        and the next push writes all of it again."""
        self._errors: dict[Digest, UserError] = {}
        """Why the remote gave no usable record or artifact of a key, when it was asked last."""
        self._pushes = Pushes(
            store, RetryingRemote(writing, self.attempts), self._background, self.counts,
            settings=settings, doubted=self.doubted, moving=self._going,
        )  # fmt: skip
        self.shown = reading.shown
        """The remote in messages."""

    def watch(self, on_event: Callable[[Moved], None]) -> None:
        """Report from now on what moves, in the thread that waits for the remote, or that calls `pulse`."""
        self._background.on_pulse = reporter(self.shown, (self._coming, self._going), on_event)

    def pulse(self) -> bool:
        """Report what has moved since the last event; return whether something is on its way."""
        self._background.on_pulse()
        return bool(self._coming.jobs or self._going.jobs)

    # -- reading ---------------------------------------------------------------------------------------------

    def find(self, key: Key) -> Record | None:
        """Return the record of a key, now also in the store, or None. The artifact stays where it is: see `bring`."""
        digest = digest_of(key)
        just_missed = time.monotonic() - self._missed.get(digest, -_MISS_SECONDS) < _MISS_SECONDS
        if not self._reads or just_missed or digest in self.doubted:
            return None
        record = self._counting_trouble(self._fetch(key), digest)
        if record is None:
            self._missed[digest] = time.monotonic()
        return record

    def receive(self, key: Key, raw: bytes) -> Record | None:
        """Return the record of a key from an envelope that its maker has sent after a push, now also in the store.

        The envelope is judged like one of the remote; None is returned for one that is refused, or cannot be filed.
        With or without an envelope, what the remote has of the key is used again.
        """
        digest = digest_of(key)
        self.doubted.discard(digest)
        return self._counting_trouble(self._admit(key, raw), digest) if raw else None

    def lack(self, key: Digest) -> UserError:
        """Return why the remote gave nothing usable of a key when it was asked last, with what helps."""
        error = self.attempts.gone or self._errors.get(key) or RemoteError(f"{self.shown} was not asked")
        if self.settings.trust.is_empty:
            error = UntrustedError("no trusted key", f"nothing of the remote {self.shown} is used: no key is trusted")
        error.hint = error.hint or f"`recipe cache verify --remote {self.shown} --deep` names what is lost there"
        return error

    def look_again(self) -> None:
        """Forget what was missing and what failed: a build that waits for results gives the remote another chance."""
        self._missed.clear()
        self.attempts.renew()

    def counts_for(self, record: Record) -> bool:
        """Say whether a record that came from a remote may still be used: its key is on the list, and not revoked."""
        return self.settings.trust.counts(record.origin.get("signer", ""))

    def bring(self, record: Record) -> None:
        """Bring the artifact of a record that came from a remote. Raises RemoteError, OSError."""
        self.doubted.add(record.digest)
        raw = self._store.envelopes.read(record.digest)
        if raw is None:
            raise RemoteError(f"the store has no envelope for the record of {record.job!r}")
        try:
            self._background.run(self._download.artifact(admitted(raw, record.key, self.settings.trust)))
        except RefusedError as error:
            self._errors[record.digest] = error
            self.counts.refuse(error)
            raise
        except (UserError, OSError) as error:
            self.counts.note(error)
            raise
        self.doubted.discard(record.digest)

    def gather(self, key: Key) -> None:
        """Add the records that other machines made for a job like that of `key`; the builder decides which one fits."""
        if self._reads:
            self._counting_trouble(self._fetch_listed(key), digest_of(key))

    def take_all(self) -> list[Record]:
        """Add every record of the remote to the store, and return those that the store has now. Raises RemoteError."""
        return self._background.run(self._fetch_all())

    def bring_all(self, records: Iterable[Record]) -> None:
        """Bring the artifacts of many records at a time. Raises RemoteError, OSError."""

        async def one(record: Record) -> None:
            raw = self._store.envelopes.read(record.digest) if self._store.is_on_remote(record) else None
            if raw is not None:
                await self._download.artifact(admitted(raw, record.key, self.settings.trust))

        try:
            self._background.run(each(records, one))
        except RefusedError as error:
            self.counts.refuse(error)
            raise

    # -- writing ---------------------------------------------------------------------------------------------

    def push(self, record: Record, *, earlier: Sequence[Record] = ()) -> None:
        """Begin to push a record in the background, unless the remote has it. The first error ends all pushing.

        A record whose artifact is still at a remote is left out. `earlier` are the records of the jobs before it.
        """
        if self.counts.error is None and not self._store.is_on_remote(record):
            self._pushes.begin(record, earlier)

    def push_new(self, record: Record, *, earlier: Sequence[Record]) -> None:
        """Begin to push a record of a build, unless builds do not push, or this store knows that the remote has it."""
        is_there = bool(record.origin) or self._store.has_pushed(record.digest, self.shown)
        if self.settings.pushes and (not is_there or record.digest in self.doubted):
            self.push(record, earlier=earlier)

    def wait(self) -> UserError | None:
        """Wait until everything is pushed, and return the first error, if any."""
        self._pushes.wait()
        return self.counts.error

    # -- the end ---------------------------------------------------------------------------------------------

    @property
    def trouble(self) -> str:
        """One line about what went wrong at the remote; "" if nothing did."""
        return self.counts.trouble(self.shown, self.attempts.gone)

    def summary(self) -> str:
        """Return one line about the remote: what went wrong, or what came and went; "" if nothing happened."""
        if line := self.trouble or self.counts.transfers(self.shown):
            return f"{line}{self.counts.repairs}"
        if self.settings.trust.is_empty:
            return f"the remote {self.shown} is not read: no key is trusted (`recipe cache trust --key KEY`)"
        return ""

    def close(self) -> None:
        """Give up what is still on its way, and close all connections. Raises RemoteError for an unfinished archive."""
        for remote in self._remotes.values():
            self._background.run(remote.close())
        self._background.close()

    # -- how records come ------------------------------------------------------------------------------------

    @property
    def _reads(self) -> bool:
        """Whether the remote is asked: it answers, and some signature counts."""
        return not self.settings.trust.is_empty and self.attempts.gone is None

    def _counting_trouble(self, work: Coroutine[Any, Any, T], key: Digest) -> T | None:
        """Return the result of a look-up about a key; None where the remote is in trouble, which is counted."""
        try:
            return self._background.run(work)
        except RemoteError as error:
            self._errors[key] = error
            if isinstance(error, RefusedError):
                self.counts.refuse(error)
            elif not isinstance(error, MissingError):
                self.counts.unread = self.counts.unread or error
        return None

    async def _fetch(self, key: Key) -> Record:
        return await self._admit(key, await self._read(record_name(key), most=LARGEST_RECORD))

    async def _admit(self, key: Key | None, raw: bytes) -> Record:
        read, signer = judged(raw, key, self.settings.trust)
        await self._check_files(read)
        with self._store.adding():
            return self._file([(read, signer, raw)])[0]

    async def _check_files(self, read: Statement) -> None:
        """Raise RefusedError if the remote lacks a blob of a record that has outlived the remote's retention."""
        if self.settings.retention is None or time.time() - read.signed_at < self.settings.retention:
            return

        async def one(blob: Blob) -> None:
            if await self._remote.entry(blob.name) is None:
                raise RefusedError("missing blob", f"the remote lacks the blob {blob.sha256}")

        await each(read.stored_blobs, one)

    def _file(self, every: Sequence[_Opened]) -> list[Record]:
        """Return the store's own records of some keys, or add those that were read; the caller is `adding`."""
        records: list[Record] = []
        new: dict[Digest, bytes] = {}
        for read, signer, raw in every:
            record = self._own(read.record)
            if record is None:
                record = replace(read.record, origin={"remote": self.shown, "signer": signer})
                new[record.digest] = raw
            records.append(record)
        self._store.adopt(new, [record for record in records if record.digest in new])
        self.counts.taken += len(new)
        return records

    def _own(self, record: Record) -> Record | None:
        """Return the record that the store has of the same key, if it can be used."""
        own = self._store.read(record.digest)
        return own if own is not None and own.key == record.key and self._is_usable(own) else None

    async def _fetch_listed(self, key: Key) -> None:
        raw = await self._read(list_name(key), most=machines.LARGEST)
        for name in machines.nearest(machines.decode(raw), key):
            if not self._store.record_path(name.key).exists():
                await self._admit(None, await self._read(name.object, most=LARGEST_RECORD))

    async def _fetch_all(self) -> list[Record]:
        taken: list[Record] = []
        known = await asyncio.to_thread(self._known)
        batches: Batches[_Opened] = Batches(lambda every: taken.extend(self._file_with_artifacts(every)), most=_BATCH)

        async def one(entry: Entry) -> None:
            if entry.name in known:
                taken.append(known[entry.name])
                return
            try:
                await batches.add(await self._open(await self._read_listed(entry)))
            except RefusedError as error:
                self.counts.refuse(error)

        await each(await self._remote.listed(RECORDS), one)
        await batches.end()
        return taken

    def _known(self) -> dict[str, Record]:
        """Return the store's own answers, by the names of their objects: a pull that was cut goes on behind them."""
        return {record_name(record.key): record for record in self._store.records() if self._is_usable(record)}

    def _is_usable(self, record: Record) -> bool:
        return self._store.counts(record) and self._store.artifacts.is_whole(record)

    async def _open(self, raw: bytes) -> _Opened:
        if len(raw) > _SMALL:
            read, signer = await asyncio.to_thread(judged, raw, None, self.settings.trust)
        else:  # not in a thread: it would keep the interpreter from this one for milliseconds, and requests would wait
            read, signer = judged(raw, None, self.settings.trust)
        return read, signer, raw

    def _file_with_artifacts(self, every: Sequence[_Opened]) -> list[Record]:
        """Add some records to the store, each with its artifact where its envelope has the bytes."""
        taken = []
        with self._store.adding():
            for record, (read, _, _) in zip(self._file(every), every, strict=True):
                try:
                    if self._store.is_on_remote(record) and read.is_small:
                        self._download.unpack(read)
                except RefusedError as error:
                    self.counts.refuse(error)
                else:
                    taken.append(record)
        return taken

    async def _read_listed(self, entry: Entry) -> bytes:
        if entry.size < LARGEST_RECORD:
            with contextlib.suppress(RefusedError):  # a longer one has replaced it since it was listed
                return await self._read(entry.name, most=entry.size)
        return await self._read(entry.name, most=LARGEST_RECORD)

    async def _read(self, name: str, *, most: int) -> bytes:
        return await self._remote.read(name, most=most, seconds=self.attempts.look_up)
