"""How long a request may take: a remote that is slower than a rate is treated like one that does not answer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable
from typing import TypeVar

from engine.store.remote.errors import RemoteError
from engine.text import sizes

PATIENCE = 3.0
"""Seconds that a remote has for the first byte of an answer, and for each further piece."""
SLOWEST = 64_000
"""The least bytes per second of a remote that is used."""

T = TypeVar("T")


def limit(size: int) -> float:
    """Return the seconds that a request with `size` bytes may take."""
    return PATIENCE + size / SLOWEST


async def within(seconds: float, request: Awaitable[T]) -> T:
    """Return the result of a request. Raises TimeoutError after `seconds`."""
    async with asyncio.timeout(seconds):
        return await request


class Meter:
    """Measures the pace of one answer while its pieces arrive."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._start = time.monotonic()
        self._bytes = 0

    async def next(self, stream: AsyncIterator[T]) -> T | None:
        """Return the next piece, or None at the end. Raises RemoteError for an answer slower than `SLOWEST`."""
        try:
            piece = await within(PATIENCE, anext(stream))
        except StopAsyncIteration:
            return None
        self._bytes += len(piece)  # type: ignore[arg-type]
        seconds = time.monotonic() - self._start
        if seconds > PATIENCE and self._bytes < SLOWEST * seconds:
            rate = sizes.decimal(int(self._bytes / seconds))
            raise RemoteError(f"{self._name} arrives with {rate} per second, which is too slow")
        return piece
