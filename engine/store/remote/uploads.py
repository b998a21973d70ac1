"""Push a record with its artifact to a remote: first every blob, then the record that names them."""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
from collections.abc import Callable
from pathlib import Path

from engine.errors import UserError
from engine.store.record import Record
from engine.store.remote import blobs, names, statement
from engine.store.remote.attempts import Attempts
from engine.store.remote.background import together
from engine.store.remote.blobs import Blob
from engine.store.remote.envelope import seal
from engine.store.remote.guard import GuardedPlace
from engine.store.remote.keys import Signer
from engine.store.remote.moving import Moving
from engine.store.remote.statement import StoredFile
from engine.store.store import Store
from engine.system import regular

AT_ONCE = 16
_BLOBS_AT_ONCE = 12
"""Blobs that are in memory at a time."""
_FILES_AT_ONCE = 32
_SMALL = 1 << 16
"""A file of at most so many bytes is read without a thread."""
_MANY = 32
"""The files of a record from which on it is not prepared at once with others."""
_PROBE = 1 << 14
_ASK_FIRST = 1 << 16
"""Above this size it is cheaper to ask whether the remote has a blob than to send it."""
_SECRETS = ("TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "PRIVATE")


class SecretError(UserError):
    """A record has a row that may be a secret, so the record is not pushed."""


class Upload:
    """Pushes records. A blob is pushed once; a record is pushed after all its blobs."""

    def __init__(
        self, store: Store, place: GuardedPlace, attempts: Attempts, *, signer: Signer | None,
        retention: float | None, on_bytes: Callable[[int], None], moving: Moving,
    ) -> None:  # fmt: skip
        """`retention` is the age in seconds at which the remote removes objects; None if it keeps all.

        `on_bytes` is called with the number of bytes of each object that was written.
        """
        self._store = store
        self._place = place
        self._attempts = attempts
        self._signer = signer
        self._retention = retention
        self._on_bytes = on_bytes
        self._moving = moving
        self._there: dict[str, asyncio.Future[None]] = {}
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._large = asyncio.Semaphore(_BLOBS_AT_ONCE)
        self._files = asyncio.Semaphore(_FILES_AT_ONCE)
        self._records = asyncio.Semaphore(_FILES_AT_ONCE)
        self._probing = asyncio.Lock()
        self._is_probed = False
        self._unsigned: UserError | None = None
        """Why nothing can be signed; None until the signer fails."""
        self.anew: set[str] = set()
        """Names of blobs that a download refused: they are written again, although the remote has them."""

    async def record(self, record: Record, *, create: bool) -> bytes | None:
        """Push a record with its artifact, and return its envelope.

        With `create`, a record that the remote has stays, and None is returned. Raises RemoteError, OSError and
        SecretError.
        """
        _refuse_secrets(record)
        async with self._records:
            return await self._record(record, create=create)

    def packed(self, record: Record) -> bytes | None:
        """Return the envelope of a record that has the bytes of its few files itself; None for a larger artifact.

        Raises OSError and SecretError.
        """
        if len(record.files) > _MANY or any(size > blobs.INLINE for size, _ in record.files.values()):
            return None
        _refuse_secrets(record)
        folder = f"{self._store.layout.artifacts}/{record.artifact}"
        files = {}
        for name in record.files:
            blob, _ = blobs.of_bytes(regular.read(f"{folder}/{name}"))
            if blob.inline is None:
                return None  # the file has grown
            files[name] = StoredFile(blob.sha256, (blob,))
        return self._sealed(statement.write(record, files))

    @property
    def signs_at_once(self) -> int:
        """How many envelopes are signed at a time."""
        return 1 if self._signer is None else self._signer.at_once

    async def create(self, record: Record, raw: bytes) -> bool:
        """Write the envelope of a record whose blobs are there; return False for a record that the remote has."""
        name = names.record(record.key)
        async with self._slots:
            return await self._attempts.make(lambda: self._place.write(name, raw, create=True))

    @property
    def shown(self) -> str:
        """The remote in messages."""
        return self._place.shown

    async def read(self, name: str, *, most: int) -> bytes:
        """Return what the remote has under a name. Raises MissingError, RefusedError and RemoteError."""
        return await self._attempts.make(lambda: self._place.read(name, most=most))

    async def write(self, name: str, raw: bytes) -> None:
        """Write an object. Raises RemoteError."""
        await self._attempts.make(lambda: self._place.write(name, raw))

    async def _record(self, record: Record, *, create: bool) -> bytes | None:
        folder = self._store.artifact_path(record.artifact)
        tasks = {}
        whole = sum(size for size, _ in record.files.values())
        with self._moving.transfer(record.job, whole):
            async with together() as group:
                for name, (size, _) in record.files.items():
                    tasks[name] = group.create_task(self._file(folder / name, size))
        files = {name: task.result() for name, task in tasks.items()}
        # In a thread: a command that signs may take seconds, and other requests go on meanwhile.
        raw = await asyncio.to_thread(self._sealed, statement.write(record, files))
        name = names.record(record.key)
        async with self._slots:
            is_written = await self._attempts.make(lambda: self._place.write(name, raw, create=create))
        return raw if is_written else None

    def _sealed(self, payload: bytes) -> bytes:
        """Return the signed envelope of a statement. A signer that has failed once is not asked again."""
        if self._unsigned is not None:
            raise self._unsigned
        try:
            return seal(payload, self._signer).encode()
        except UserError as error:
            self._unsigned = error
            raise

    async def _file(self, path: Path, size: int) -> StoredFile:
        async with self._files:
            if size <= _SMALL:
                blob, raw = blobs.of_bytes(regular.read(path))
                await self._large.acquire()
                await self._blob(blob, raw)
                return StoredFile(blob.sha256, (blob,))
            await self._probe()
            return await self._large_file(path)

    async def _large_file(self, path: Path) -> StoredFile:
        every: list[Blob] = []
        whole = hashlib.sha256()
        with regular.open_file(path) as file:
            async with together() as group:
                while not every or every[-1].size == blobs.SIZE:
                    await self._large.acquire()
                    content = await asyncio.to_thread(file.read, blobs.SIZE)
                    if not content:
                        self._large.release()
                        break
                    blob, raw = await asyncio.to_thread(blobs.of_bytes, content)
                    await asyncio.to_thread(whole.update, content)
                    every.append(blob)
                    group.create_task(self._blob(blob, raw))
        return StoredFile(whole.hexdigest(), tuple(every))

    async def _probe(self) -> None:
        """Write a few bytes before the first large blob, so that a remote that is far too slow is known in seconds."""
        async with self._probing:
            if not self._is_probed:
                await self._attempts.make(lambda: self._place.write(names.PROBE, os.urandom(_PROBE)))
                self._is_probed = True

    async def _blob(self, blob: Blob, raw: bytes) -> None:
        try:
            if blob.inline is None:
                await self._once(names.blob(blob), raw)
            self._moving.advance(blob.size)
        finally:
            self._large.release()

    async def _once(self, name: str, raw: bytes) -> None:
        """Write a blob, unless this process wrote it already, is writing it, or the remote has it."""
        known = self._there.get(name)
        if known is not None:
            return await asyncio.shield(known)
        future = self._there[name] = asyncio.get_running_loop().create_future()
        try:
            async with self._slots:
                if not await self._is_there(name, len(raw)):
                    await self._attempts.make(lambda: self._place.write(name, raw))
                    self._on_bytes(len(raw))
            future.set_result(None)
        except BaseException as error:
            del self._there[name]
            future.set_exception(error if isinstance(error, Exception) else ConnectionError("cut"))
            future.exception()  # nobody may wait for it
            raise
        return None

    async def _is_there(self, name: str, size: int) -> bool:
        if name in self.anew or (size < _ASK_FIRST and self._retention is None):
            return False
        entry = await self._attempts.make(lambda: self._place.entry(name))
        if entry is None or entry.size != size:
            return False
        # An object that the remote removes soon is written again, so that no record outlives its blobs.
        return self._retention is None or time.time() - entry.modified < self._retention / 2


def _refuse_secrets(record: Record) -> None:
    rows = [row for row in record.key if row.startswith("env.") and any(word in row.upper() for word in _SECRETS)]
    if rows:
        raise SecretError(
            f"the record of {record.job!r} is not pushed: a row of its key may be a secret",
            [f"rows: {', '.join(rows)}"],
            "a step should name no secret in `variables`: its value is a row of the key",
        )
