"""Bring the files of an artifact to a remote: each as blobs, and each blob once."""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from engine.store.record import Record
from engine.store.remote import blobs
from engine.store.remote.attempts import RetryingRemote
from engine.store.remote.background import AT_ONCE, together
from engine.store.remote.blobs import Blob
from engine.store.remote.objects import PROBE
from engine.store.remote.statement import StoredFile
from engine.store.remote.transfers import Moving
from engine.store.store import Store
from engine.system import regular

_BLOBS = 12
_FILES = 32
_SMALL = 1 << 16
"""A file of at most so many bytes is one blob, and is read without a thread."""
_PROBE_BYTES = 1 << 14
_ASK_FIRST = 1 << 16
"""From this size on, it is cheaper to ask whether the remote has a blob than to send it."""


class Upload:
    """Brings files to a remote. What this process has brought, or what the remote has, is not sent again."""

    def __init__(
        self, store: Store, remote: RetryingRemote, *, retention: float | None,
        on_bytes: Callable[[int], None], moving: Moving,
    ) -> None:  # fmt: skip
        """`retention` is the age in seconds at which the remote removes objects; None if it keeps all.

        `on_bytes` is called with the number of bytes of each object that was written.
        """
        self._store = store
        self._remote = remote
        self._retention = retention
        self._on_bytes = on_bytes
        self._moving = moving
        self.requests = asyncio.Semaphore(AT_ONCE)
        """Bounds the requests that write at a time."""
        self._memory = asyncio.Semaphore(_BLOBS)
        """Bounds the blobs that are in memory at a time."""
        self._files = asyncio.Semaphore(_FILES)
        self.sent: dict[str, asyncio.Future[None]] = {}
        """The name of each blob that this process has written, is writing, or saw at the remote."""
        self._probing = asyncio.Lock()
        self._is_probed = False

    async def artifact(self, record: Record, *, anew: bool = False) -> dict[str, StoredFile]:
        """Bring the files of a record's artifact to the remote; return where they lie. Raises RemoteError, OSError.

        With `anew`, every blob is written, whatever the remote has.
        """
        folder = self._store.artifact_path(record.artifact)
        tasks = {}
        with self._moving.transfer(record.job, record.size):
            async with together() as group:
                for name, (size, _) in record.files.items():
                    tasks[name] = group.create_task(self._file(folder / name, size, anew=anew))
        return {name: task.result() for name, task in tasks.items()}

    async def has_all(self, every: Iterable[Blob]) -> bool:
        """Say whether the remote has all blobs of a record, each with its size. Raises RemoteError."""
        for blob in every:
            async with self.requests:
                entry = await self._remote.entry(blob.name)
            if entry is None or entry.size != blob.stored:
                return False
        return True

    async def _file(self, path: Path, size: int, *, anew: bool) -> StoredFile:
        async with self._files:
            if size > _SMALL:
                await self._probe()
                return await self._large_file(path, anew=anew)
            async with self._memory:
                blob, raw = blobs.of_bytes(regular.read(path))
                await self._blob(blob, raw, anew=anew)
            return StoredFile(blob.sha256, (blob,))

    async def _large_file(self, path: Path, *, anew: bool) -> StoredFile:
        """Bring a file of any size. Its next blobs are read while earlier ones are on their way."""
        every: list[Blob] = []
        whole = hashlib.sha256()

        async def send(blob: Blob, raw: bytes) -> None:
            try:
                await self._blob(blob, raw, anew=anew)
            finally:
                self._memory.release()

        with regular.open_file(path) as file:
            async with together() as group:
                while not every or every[-1].size == blobs.SIZE:
                    await self._memory.acquire()  # `send` gives it back
                    content = await asyncio.to_thread(file.read, blobs.SIZE)
                    if not content:
                        self._memory.release()
                        break
                    blob, raw = await asyncio.to_thread(blobs.of_bytes, content)
                    await asyncio.to_thread(whole.update, content)
                    every.append(blob)
                    group.create_task(send(blob, raw))
        return StoredFile(whole.hexdigest(), tuple(every))

    async def _probe(self) -> None:
        """Write a few bytes before the first large file, so that a remote that is far too slow is known in seconds."""
        async with self._probing:
            if not self._is_probed:
                await self._remote.write(PROBE, os.urandom(_PROBE_BYTES))
                self._is_probed = True

    async def _blob(self, blob: Blob, raw: bytes, *, anew: bool) -> None:
        if blob.inline is None:
            await self._once(blob.name, raw, anew=anew)
        self._moving.advance(blob.size)

    async def _once(self, name: str, raw: bytes, *, anew: bool) -> None:
        """Write a blob. A second file with this blob waits until the first one has written it."""
        if name in self.sent and not anew:
            await asyncio.shield(self.sent[name])
            return
        future = self.sent[name] = asyncio.get_running_loop().create_future()
        try:
            async with self.requests:
                if anew or not await self._is_there(name, len(raw)):
                    await self._remote.write(name, raw)
                    self._on_bytes(len(raw))
            future.set_result(None)
        except BaseException as error:
            self.sent.pop(name, None)  # a later push tries again
            future.set_exception(error if isinstance(error, Exception) else ConnectionError("cut"))
            future.exception()  # nobody may wait for it
            raise

    async def _is_there(self, name: str, size: int) -> bool:
        """Say whether the remote has a blob, and keeps it for long enough. A small blob is not asked for."""
        if size < _ASK_FIRST and self._retention is None:
            return False
        entry = await self._remote.entry(name)
        if entry is None or entry.size != size:
            return False
        # An object that the remote removes soon is written again, so that no record outlives its blobs.
        return self._retention is None or time.time() - entry.modified < self._retention / 2
