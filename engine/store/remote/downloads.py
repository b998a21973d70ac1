"""Bring the files of an artifact from a remote: blob by blob, each held against its SHA-256 before it is used."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from engine import digest
from engine.digest import Digest
from engine.store.disk import link_or_copy
from engine.store.file_lock import try_take
from engine.store.remote.attempts import RetryingRemote
from engine.store.remote.background import AT_ONCE, together
from engine.store.remote.blobs import Blob
from engine.store.remote.objects import MissingError, RefusedError
from engine.store.remote.statement import Statement, StoredFile
from engine.store.remote.transfers import Moving
from engine.store.store import Store

_BLOBS_AT_ONCE = 4
"""Blobs of one large file at a time; each is in memory once or twice."""
_BEGINNING = 64
_READ_ONLY = 0o444


class Download:
    """Brings artifacts into a store. What a killed download brought whole is not brought again."""

    def __init__(
        self, store: Store, remote: RetryingRemote, *, on_bytes: Callable[[int], None], moving: Moving
    ) -> None:
        """`on_bytes` is called with the number of bytes of each blob that has arrived."""
        self._store = store
        self._remote = remote
        self._on_bytes = on_bytes
        self._moving = moving
        self._slots = asyncio.Semaphore(AT_ONCE)

    async def artifact(self, statement: Statement) -> None:
        """Bring the artifact of a record into the store. Raises RemoteError, RefusedError and OSError."""
        if statement.is_small:
            return await asyncio.to_thread(self._unpacked, statement)
        record = statement.record
        with self._store.presence.workplace() as folder, self._moving.transfer(record.job, record.size):
            out = folder / "out"
            out.mkdir()
            async with together() as group:
                for name, file in statement.files.items():
                    size, content = record.files[name]
                    group.create_task(self._file(out / name, file, size=size, content=content))
            await asyncio.to_thread(self._store.restore, record, out)
        return None

    def _unpacked(self, statement: Statement) -> None:
        with self._store.adding():
            self.unpack(statement)

    def unpack(self, statement: Statement) -> None:
        """Add an artifact whose bytes are in its statement to the store. Raises RefusedError, OSError, StoreError.

        The caller is `adding` to the store.
        """
        contents = {}
        for name, file in statement.files.items():
            content = b"".join(blob.opened(blob.inline or b"") for blob in file.blobs)
            if digest.of_bytes(content) != statement.record.files[name][1]:
                raise _other_content(name)
            contents[name] = content
        self._store.restore_small(statement.record, contents)

    async def _file(self, path: Path, file: StoredFile, *, size: int, content: Digest) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        if await asyncio.to_thread(self._take_stored, path, content):
            self._moving.advance(size)
            return
        if len(file.blobs) == 1:
            await asyncio.to_thread(path.write_bytes, await self._blob(file.blobs[0]))
            self._moving.advance(size)
        else:
            await self._large(path, file, size)
        await asyncio.to_thread(self._keep, path, content)

    def _take_stored(self, path: Path, content: Digest) -> bool:
        """Link to the store's own file of this content, if there is one."""
        stored = self._store.layout.pooled(content)
        with contextlib.suppress(OSError):
            if self._store.contents.digest(stored) == content and not stored.is_symlink():
                link_or_copy(stored, path)
                return True
        return False

    def _keep(self, path: Path, content: Digest) -> None:
        """Hold a file against the record's digest, and add it to the pool, where the next attempt finds it."""
        if digest.of_file(path) != content:
            raise _other_content(path.name)
        os.chmod(path, _READ_ONLY)
        self._store.artifacts.offer(path, content)

    async def _large(self, path: Path, file: StoredFile, size: int) -> None:
        """Bring a file of several blobs. A file that a killed attempt left unfinished is gone on with."""
        incoming = self._store.layout.incoming / f"{file.sha256}.part"
        incoming.parent.mkdir(exist_ok=True)
        lock = try_take(self._store.layout.locks / f"incoming-{file.sha256}", task="a download")
        try:
            part = incoming if lock is not None else path  # another process brings the same file: both go on
            descriptor = os.open(part, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                os.ftruncate(descriptor, size)
                await self._parts(descriptor, file.blobs)
            finally:
                os.close(descriptor)
            if part is not path:
                os.rename(part, path)
        finally:
            if lock is not None:
                lock.release()

    async def _parts(self, descriptor: int, blobs: Sequence[Blob]) -> None:
        slots = asyncio.Semaphore(_BLOBS_AT_ONCE)

        async def one(blob: Blob, offset: int) -> None:
            async with slots:
                if not await asyncio.to_thread(_has, descriptor, blob, offset):
                    content = await self._blob(blob)
                    await asyncio.to_thread(_write, descriptor, content, offset)
                self._moving.advance(blob.size)

        offset = 0
        async with together() as group:
            for blob in blobs:
                group.create_task(one(blob, offset))
                offset += blob.size

    async def _blob(self, blob: Blob) -> bytes:
        if blob.inline is not None:
            return blob.opened(blob.inline)
        async with self._slots:
            try:
                raw = await self._remote.read(blob.name, most=blob.stored)
            except MissingError:
                raise RefusedError("missing blob", f"the remote lacks the blob {blob.sha256}") from None
            content = await asyncio.to_thread(blob.opened, raw)
        self._on_bytes(len(content))
        return content


def _other_content(name: str) -> RefusedError:
    return RefusedError("wrong digest", f"{name} has another content than its record says")


def _write(descriptor: int, content: bytes, offset: int) -> None:
    """Write all bytes: a disk that fills up takes a part of them first. Raises OSError."""
    view = memoryview(content)
    while view:
        written = os.pwrite(descriptor, view, offset)
        view, offset = view[written:], offset + written


def _has(descriptor: int, blob: Blob, offset: int) -> bool:
    # A look at the first bytes: to read all of a hole costs more than to write the blob.
    if not any(os.pread(descriptor, _BEGINNING, offset)):
        return False
    return hashlib.sha256(os.pread(descriptor, blob.size, offset)).hexdigest() == blob.sha256
