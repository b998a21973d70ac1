"""A place in an object store (S3, Google Cloud Storage, Azure) or in a folder, by obstore."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import obstore
from obstore import exceptions

from engine.store.remote import buckets, pace
from engine.store.remote.errors import DeniedError, MissingError, RefusedError, RemoteError
from engine.store.remote.objects import Entry, shown

_PIECE = 1 << 18
"""Bytes of an object that are read between two looks at the pace."""
_SMALL = 1 << 16
"""An object of at most so many bytes comes in one answer."""


class ObjectStorePlace:
    """A prefix of a bucket, or a folder. obstore never shows a partly written object."""

    def __init__(self, url: str, *, environ: Mapping[str, str], writes: bool) -> None:
        """Raises RemoteError for settings that obstore refuses."""
        self.shown = shown(url)
        with self._explained(""):
            self._store = buckets.opened(url, environ=environ, writes=writes)

    async def read(self, name: str, *, most: int) -> bytes:
        """Return an object, as `RemotePlace.read` describes."""
        with self._explained(name):
            if 0 < most <= _SMALL:
                return await pace.within(pace.limit(most), self._small(name, most))
            return await self._whole(name, most)

    async def _small(self, name: str, most: int) -> bytes:
        """Return an object of few bytes from one answer: head and bytes apart cost this process twice as much."""
        try:
            raw = bytes(await obstore.get_range_async(self._store, name, start=0, length=most + 1))
        except exceptions.GenericError:
            return await self._whole(name, most)  # an empty object has no such range
        if len(raw) > most:
            raise RefusedError("too long", f"{name} has more than the {most} bytes that are allowed")
        return raw

    async def _whole(self, name: str, most: int) -> bytes:
        result = await pace.within(pace.PATIENCE, obstore.get_async(self._store, name))
        if result.meta["size"] > most:
            raise RefusedError("too long", f"{name} has {result.meta['size']} bytes, at most {most} are allowed")
        if result.meta["size"] <= _PIECE:
            return bytes(await pace.within(pace.limit(result.meta["size"]), result.bytes_async()))
        meter = pace.Meter(name)
        pieces: list[bytes] = []
        stream = aiter(result.stream(min_chunk_size=_PIECE))
        while (piece := await meter.next(stream)) is not None:
            pieces.append(piece)
        return b"".join(pieces)

    async def write(self, name: str, data: bytes, *, create: bool = False) -> bool:
        """Write an object, as `RemotePlace.write` describes."""
        with self._explained(name):
            try:
                mode: Any = "create" if create else "overwrite"
                put = obstore.put_async(self._store, name, data, mode=mode, use_multipart=False)
                await pace.within(pace.limit(len(data)), put)
            except (exceptions.AlreadyExistsError, exceptions.PreconditionError):
                return False
            return True

    async def upload(self, name: str, pieces: AsyncIterator[bytes], size: int) -> None:
        """Write an object of `size` bytes, in parts where it is large; nothing is seen before its last byte is there.

        Raises RemoteError, and what `pieces` raises.
        """
        with self._explained(name):
            await pace.within(pace.limit(size), obstore.put_async(self._store, name, pieces))

    async def entry(self, name: str) -> Entry | None:
        """Return what is known of an object, as `RemotePlace.entry` describes."""
        try:
            with self._explained(name):
                meta = await pace.within(pace.PATIENCE, obstore.head_async(self._store, name))
        except MissingError:
            return None
        return Entry(name, int(meta["size"]), meta["last_modified"].timestamp())

    async def list(self, prefix: str) -> AsyncIterator[Entry]:
        """Yield the objects of a folder, as `RemotePlace.list` describes."""
        with self._explained(prefix):
            async for batch in obstore.list(self._store, prefix, chunk_size=1000):
                for meta in batch:
                    yield Entry(str(meta["path"]), int(meta["size"]), meta["last_modified"].timestamp())

    async def remove(self, name: str) -> None:
        """Remove an object, as `RemotePlace.remove` describes."""
        try:
            with self._explained(name):
                await pace.within(pace.PATIENCE, obstore.delete_async(self._store, name))
        except MissingError:
            return

    async def close(self) -> None:
        """Do nothing: obstore closes its connections itself."""

    @contextmanager
    def _explained(self, name: str) -> Iterator[None]:
        """Raise the errors of obstore as RemoteError. Their texts are shortened: they may have the query of a URL."""
        place = f"{self.shown}/{name}" if name else self.shown
        try:
            yield
        except TimeoutError:
            raise RemoteError(f"{place}: no answer in time") from None
        except (exceptions.NotFoundError, FileNotFoundError):
            raise MissingError(f"{place}: there is no such object") from None
        except (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError, PermissionError) as error:
            raise DeniedError(f"{place}: the credentials are refused", [_first_line(error)]) from None
        except (exceptions.BaseError, OSError, ValueError) as error:
            raise RemoteError(f"{place}: {_first_line(error)}") from None


def _first_line(error: BaseException) -> str:
    """Return the first line of an error, without the query of a URL, which may hold a signature."""
    line = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    words = [word.partition("?")[0] if "://" in word else word for word in line.split(" ")]
    return " ".join(words)
