"""The guard before every remote: each request has a time limit, and all that goes wrong in it is a RemoteError."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Protocol, Self, TypeVar

from engine.errors import UserError
from engine.store.remote.objects import DeniedError, Entry, MissingError, RemoteError
from engine.text import sizes

PATIENCE = 3.0
"""Seconds that a remote has for the first byte of an answer, and for each further piece."""
SLOWEST = 64_000
"""The least bytes per second of a remote that is used."""
_LISTED = 10.0
"""Seconds for each thousand names of a listing."""
_LONGEST_TEXT = 300
T = TypeVar("T")


class Transport(Protocol):
    """What a remote needs of a library or a protocol. Its methods raise whatever they raise.

    `entry` raises for a missing object, and `list` yields many objects at a time. `meaning` returns what an error says
    about the remote, or None.
    """

    async def read(self, name: str, *, most: int) -> bytes: ...
    async def write(self, name: str, data: bytes, *, create: bool = False) -> bool: ...
    async def entry(self, name: str) -> Entry: ...
    def list(self, prefix: str) -> AsyncIterator[list[Entry]]: ...
    async def remove(self, name: str) -> None: ...
    async def close(self) -> None: ...
    def meaning(self, error: BaseException, place: str) -> RemoteError | None: ...


class GuardedRemote:
    """Objects by name. A write is atomic: no reader sees a part of an object.

    Nothing that a server or a library does gets past this class: whatever fails is a RemoteError.
    """

    def __init__(self, shown: str, opened: Callable[[], Transport]) -> None:
        """`opened` opens the remote, when it is first used. `shown` is the URL without its secrets."""
        self.shown = shown
        self._opened = opened

    @cached_property
    def transport(self) -> Any:
        """The open remote. Raises DeniedError for settings that no remote can be opened with."""
        with _explained(self.shown, lambda error, place: DeniedError(f"{place}: {first_line(error)}")):
            return self._opened()

    def checked(self) -> Self:
        """Open the remote, and return it. Raises RemoteError for settings that no remote can be opened with."""
        self.transport  # noqa: B018 - this opens it
        return self

    async def read(self, name: str, *, most: int) -> bytes:
        """Return an object. Raises MissingError, RefusedError for more than `most` bytes, and RemoteError."""
        return await self._within(limit(most), name, lambda: self.transport.read(name, most=most))

    async def write(self, name: str, data: bytes, *, create: bool = False) -> bool:
        """Write an object. With `create`, an object that exists stays; returns whether the object was written.

        A web server may not know `create`; there, two writers at the same moment may both write. Raises RemoteError.
        """
        try:
            seconds = limit(len(data)) + create * PATIENCE
            return await self._within(seconds, name, lambda: self.transport.write(name, data, create=create))
        except MissingError as error:
            raise RemoteError(f"{error.what}, and none can be written", error.facts, error.hint) from None

    async def upload(self, name: str, pieces: AsyncIterator[bytes], size: int) -> None:
        """Write an object of `size` bytes, in parts where it is large; nothing is seen before its last byte is there.

        Raises RemoteError, and the UserErrors of `pieces`.
        """
        await self._within(limit(size), name, lambda: self.transport.upload(name, pieces))

    async def sha256(self, name: str, size: int) -> str:
        """Return the SHA-256 of an object of `size` bytes, in hexadecimal digits. Raises MissingError, RemoteError."""
        return await self._within(limit(size), name, lambda: self.transport.sha256(name))

    async def entry(self, name: str) -> Entry | None:
        """Return what is known of an object, or None for a missing object. Raises RemoteError."""
        try:
            return await self._within(PATIENCE, name, lambda: self.transport.entry(name))
        except MissingError:
            return None

    async def list(self, prefix: str) -> AsyncIterator[Entry]:
        """Yield the objects whose names begin with the folder `prefix`. Raises RemoteError where nothing can list."""
        listing: AsyncIterator[list[Entry]] = self.transport.list(prefix)
        none: list[Entry] = []
        seen: set[str] = set()
        while entries := await self._within(_LISTED, prefix, lambda: anext(listing, none)):
            if seen.intersection(names := [entry.name for entry in entries]):
                raise RemoteError(f"{self.shown}/{prefix}: the listing begins again and again")
            seen.update(names)
            for entry in entries:
                yield entry

    async def remove(self, name: str) -> None:
        """Remove an object; a missing object is no error. Raises RemoteError."""
        try:
            await self._within(PATIENCE, name, lambda: self.transport.remove(name))
        except MissingError:
            return

    async def close(self) -> None:
        """Close all connections."""
        if "transport" in vars(self):
            with _explained(self.shown, self.transport.meaning):
                await self.transport.close()

    async def _within(self, seconds: float, name: str, request: Callable[[], Awaitable[T]]) -> T:
        meaning = self.transport.meaning
        with _explained(f"{self.shown}/{name}", meaning):
            async with asyncio.timeout(seconds):
                return await request()


@contextmanager
def _explained(place: str, meaning: Callable[[BaseException, str], RemoteError | None]) -> Iterator[None]:
    try:
        yield
    except (UserError, asyncio.CancelledError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001 - a panic of obstore is no Exception
        if isinstance(error, TimeoutError):
            raise RemoteError(f"{place}: no answer in time") from None
        raise meaning(error, place) or RemoteError(f"{place}: {first_line(error)}") from None


def first_line(error: BaseException) -> str:
    """Return the first line of an error, without the query of a URL, which may hold a signature."""
    line = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
    words = [word.partition("?")[0] if "://" in word else word for word in line[:_LONGEST_TEXT].split(" ")]
    return "".join(each if each.isprintable() else " " for each in " ".join(words))


def limit(size: int) -> float:
    """Return the seconds that a request with `size` bytes may take."""
    return PATIENCE + size / SLOWEST


async def within(seconds: float, request: Awaitable[T]) -> T:
    """Return the result of a request. Raises TimeoutError after `seconds`."""
    async with asyncio.timeout(seconds):
        return await request


async def measured(name: str, stream: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the pieces of an answer. Raises RemoteError for one slower than `SLOWEST`, and TimeoutError."""
    start, size = time.monotonic(), 0
    while True:
        try:
            piece = await within(PATIENCE, anext(stream))
        except StopAsyncIteration:
            return
        size += len(piece)
        seconds = time.monotonic() - start
        if seconds > PATIENCE and size < SLOWEST * seconds:
            rate = sizes.decimal(int(size / seconds))
            raise RemoteError(f"{name} arrives with {rate} per second, which is too slow")
        yield piece
