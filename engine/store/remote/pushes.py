"""The records on their way to a remote: the blobs of a record, then its envelope, and then a note that it is there."""

# New records go first. Small ones have the bytes of their files in the envelope: many are prepared and noted at a time.

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass, field

from engine.digest import Digest
from engine.errors import UserError
from engine.key import Key
from engine.store.record import Record
from engine.store.releases import Release, package_of
from engine.store.remote import machines, statement
from engine.store.remote.attempts import RetryingRemote
from engine.store.remote.background import Background, Batches, together
from engine.store.remote.blobs import INLINE
from engine.store.remote.envelope import seal
from engine.store.remote.objects import MissingError, RefusedError, list_name, record_name
from engine.store.remote.settings import RemoteSettings
from engine.store.remote.statement import LARGEST_RECORD, StoredFile, admitted
from engine.store.remote.transfers import Counts, Moving
from engine.store.remote.uploads import Upload
from engine.store.store import Store

_LISTINGS = 4
_LISTING_PAUSE = 0.2
"""Seconds: two machines that finish at the same moment write a list one after the other."""
_MANY = 32
"""The files of a record from which on it is not prepared together with others."""
_PACKED = 8
"""The most small records that are prepared between two looks at what the remote has answered."""
_NOTED = 32
"""The most small records that are noted at a time."""
_NOTING_PAUSE = 0.02
"""Seconds that a note waits for more records: notes of two or three records each cost as much as the requests."""
_UNDER_WAY = 64
"""The most pushes that have begun; `Upload` says how many requests are made at a time."""
_LARGE = 32
"""The most records of larger artifacts that are pushed at a time."""
_RELEASED = 86400.0
"""Seconds: a release relies on blobs that are younger than half of it, and writes older ones again. A collection
removes no blob that is younger than `upkeep.GRACE`: there are 12 hours between the first blob and the release."""
_SECRETS = ("TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "PRIVATE")


class SecretError(UserError):
    """A record has a row that may be a secret, so the record is not pushed."""


@dataclass
class Push:
    """A record on its way to the remote."""

    record: Record
    earlier: Sequence[Record]
    is_known: bool
    """Whether this store has pushed the record before."""
    raw: bytes | None = None
    """Its envelope, once it is made."""
    end: Future[None] = field(default_factory=Future)


class Pushes:
    """The pushes of one process."""

    def __init__(
        self, store: Store, remote: RetryingRemote, background: Background, counts: Counts, *,
        settings: RemoteSettings, doubted: set[Digest], moving: Moving,
    ) -> None:  # fmt: skip
        """The records of the keys `doubted` are written once in any case, with all their blobs."""
        self._store = store
        self._remote = remote
        self._upload = Upload(store, remote, retention=settings.retention, on_bytes=counts.send, moving=moving)
        self._retention = settings.retention
        self._signer = settings.signer
        self._trust = settings.trust
        self._unsigned: UserError | None = None
        """Why nothing can be signed; None until the signer fails."""
        self._large = asyncio.Semaphore(_LARGE)
        self._background = background
        self._counts = counts
        self._doubted = doubted
        self._lock = threading.Lock()
        self._every: dict[Digest, Push] = {}
        self._waiting: list[Push] = []
        self._known: list[Push] = []
        """Pushes that `wait` starts: a push that was cut goes on with what is new."""
        self._is_running = False

    def begin(self, record: Record, earlier: Sequence[Record]) -> None:
        """Begin to push a record, unless its push has begun already."""
        if record.digest in self._every:
            return
        push = Push(record, tuple(earlier), self._store.has_pushed(record.digest, self._remote.shown))
        self._every[record.digest] = push
        if push.is_known:
            self._known.append(push)
        else:
            self._start([push])

    def wait(self) -> None:
        """Wait until all pushes have ended. Errors that are no UserError or OSError are raised."""
        known, self._known = self._known, []
        self._start(known)
        ends = [push.end for push in self._every.values()]
        self._background.wait(ends)
        for end in ends:
            with contextlib.suppress(UserError, OSError, CancelledError):
                end.result()
        self._every.clear()

    async def release(self, name: str, record: Record, release: Release) -> None:
        """Write a copy of a record, with its recipe, unless a usable one is there. Raises UserError and OSError."""
        if await self._usable(name, None, package=release.sha256) is not None:
            return
        _refuse_secrets(record)
        kept = min(_RELEASED, self._retention or _RELEASED)
        counts, moving = self._counts, Moving("out")
        upload = Upload(self._store, self._remote, retention=kept, on_bytes=counts.send, moving=moving)
        payload = statement.write(record, await upload.artifact(record), recipe=release.recipe)
        raw = (await asyncio.to_thread(seal, payload, self._signer)).encode()
        await self._remote.write(name, raw)

    async def remove(self, name: str) -> None:
        """Remove a released record. Raises RemoteError."""
        await self._remote.remove(name)

    def _start(self, pushes: Sequence[Push]) -> None:
        with self._lock:
            self._waiting += pushes
            is_first, self._is_running = not self._is_running, True
        if is_first:
            self._background.start(self._run())

    async def _run(self) -> None:
        try:
            await self._begun()
        except BaseException as error:
            with self._lock:
                self._is_running = False
            for push in [each for each in self._every.values() if not each.end.done()]:
                if isinstance(error, Exception):
                    push.end.set_exception(error)
                else:
                    push.end.cancel()
            raise

    async def _begun(self) -> None:
        slots = asyncio.Semaphore(_UNDER_WAY)
        kept: Batches[Push] = Batches(self._keep, most=_NOTED, pause=_NOTING_PAUSE)

        async def one(push: Push) -> None:
            try:
                push.raw = await self._written(push)
                if machines.needs_listing(push.record):
                    await self._listed(push.record, push.earlier)
                await kept.add(push)
            except (UserError, OSError) as error:
                self._counts.note(error)
                push.end.set_exception(error)
            finally:
                slots.release()

        async with together() as group:
            while batch := self._next():
                await self._pack(batch)
                for push in batch:
                    await slots.acquire()
                    group.create_task(one(push))
        await kept.end()

    def _next(self) -> list[Push]:
        with self._lock:
            batch = self._waiting[:_PACKED]
            del self._waiting[:_PACKED]
            self._is_running = bool(batch)
        return batch

    async def _pack(self, pushes: Sequence[Push]) -> None:
        """Make the envelopes of small records. An error shows again when the record is pushed by itself."""
        new = [push for push in pushes if not push.is_known and push.record.digest not in self._doubted]
        if self._signer is not None and self._signer.at_once > 1:
            await asyncio.to_thread(self._pack_at_once, new, self._signer.at_once)
            return
        # Not in a thread: it would keep the interpreter from this one for milliseconds, and requests would wait.
        for push in new:
            self._pack_one(push)
            await asyncio.sleep(0)

    def _pack_at_once(self, pushes: Sequence[Push], threads: int) -> None:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(self._pack_one, pushes))

    def _pack_one(self, push: Push) -> None:
        """Make the envelope of a record if it has the bytes of its few files itself."""
        record = push.record
        if len(record.files) > _MANY or any(size > INLINE for size, _ in record.files.values()):
            return
        with contextlib.suppress(UserError, OSError):
            folder = self._store.artifact_path(record.artifact)
            files = {name: StoredFile.of(folder / name) for name in record.files}
            if all(blob.inline is not None for file in files.values() for blob in file.blobs):  # no file has grown
                push.raw = self._sealed(record, files)

    def _sealed(self, record: Record, files: Mapping[str, StoredFile]) -> bytes:
        """Return the signed envelope of a record. A signer that has failed once is not asked again."""
        _refuse_secrets(record)
        if self._unsigned is not None:
            raise self._unsigned
        try:
            return seal(statement.write(record, files), self._signer).encode()
        except UserError as error:
            self._unsigned = error
            raise

    def _keep(self, pushes: Sequence[Push]) -> None:
        envelopes = {push.record.digest: push.raw for push in pushes if push.raw is not None}
        try:
            self._store.keep_pushed(envelopes, self._remote.shown)
        except (UserError, OSError) as error:
            for push in pushes:
                push.end.set_exception(error)
        else:
            for push in pushes:
                push.end.set_result(None)

    async def _written(self, push: Push) -> bytes:
        """Return the envelope that the remote has of a record, after writing it where that is needed.

        A new record is written at once: most are not there yet. One that this store has pushed is asked for first, with
        its blobs: what the remote has lost is pushed again.
        """
        record = push.record
        anew = record.digest in self._doubted
        usable = await self._usable(record_name(record.key), record.key) if push.is_known and not anew else None
        if usable is not None:
            return usable
        if push.is_known or anew:
            self._upload.sent.clear()
            self._counts.again.append(record.job)
        raw = push.raw or await self._whole(record, anew=anew)
        if await self._write(record, raw, create=not anew):
            self._doubted.discard(record.digest)
            return raw
        return await self._usable(record_name(record.key), record.key) or await self._replaced(record)

    async def _replaced(self, record: Record) -> bytes:
        raw = await self._whole(record, anew=False)
        await self._write(record, raw, create=False)
        return raw

    async def _whole(self, record: Record, *, anew: bool) -> bytes:
        """Bring a record's artifact to the remote, and return the record's envelope."""
        _refuse_secrets(record)
        async with self._large:
            files = await self._upload.artifact(record, anew=anew)
            # In a thread: a command that signs may take seconds, and other requests go on meanwhile.
            return await asyncio.to_thread(self._sealed, record, files)

    async def _write(self, record: Record, raw: bytes, *, create: bool) -> bool:
        async with self._upload.requests:
            is_written = await self._remote.write(record_name(record.key), raw, create=create)
        self._counts.pushed += is_written
        return is_written

    async def _usable(self, name: str, key: Key | None, *, package: str = "") -> bytes | None:
        """Return an envelope that the remote has with all its blobs; None if this user could not use it.

        `package` is the SHA-256 of the package that the envelope of a release must name.
        """
        try:
            raw = await self._remote.read(name, most=LARGEST_RECORD)
            read = admitted(raw, key, self._trust)
        except (MissingError, RefusedError):
            return None
        is_it = not package or package == package_of(read.files)
        return raw if is_it and await self._upload.has_all(read.stored_blobs) else None

    async def _listed(self, record: Record, earlier: Sequence[Record]) -> None:
        """Add a record to its list, and read the list again: another machine may have written it at the same moment."""
        name, new = list_name(record.key), machines.candidate(record, earlier)
        for _ in range(_LISTINGS):
            try:
                every = machines.decode(await self._remote.read(name, most=machines.LARGEST))
            except (MissingError, RefusedError):
                every = ()
            if any(each.name == new.name for each in every):
                return
            await self._remote.write(name, machines.encode(machines.with_candidate(every, new)))
            await asyncio.sleep(random.uniform(0.0, _LISTING_PAUSE))  # noqa: S311 - spreads the writers


def _refuse_secrets(record: Record) -> None:
    rows = [row for row in record.key if row.startswith("env.") and any(word in row.upper() for word in _SECRETS)]
    if rows:
        raise SecretError(
            f"the record of {record.job!r} is not pushed: a row of its key may be a secret",
            [f"rows: {', '.join(rows)}"],
            "a step should name no secret in `variables`: its value is a row of the key",
        )
