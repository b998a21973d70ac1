"""Attempts at a remote: retries with growing pauses, and a total after which the remote is left alone."""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from engine.store.remote.guard import GuardedRemote
from engine.store.remote.objects import DeniedError, Entry, MissingError, RefusedError, RemoteError

T = TypeVar("T")
_SLOW = 1.0
"""Seconds: an answer that brings nothing and takes longer counts as lost."""


@dataclass
class Attempts:
    """The attempts of one command or build at one remote.

    `lost` sums the seconds of failed attempts, of pauses, and of slow answers that bring nothing. When it reaches
    `budget`, the remote is `gone`: no further request is made. A remote that has answered nothing yet has `first`.
    """

    tries: int
    budget: float
    first: float = math.inf
    pause: float = 0.2
    """The pause in seconds before the second attempt; each further pause is twice as long."""
    look_up: float = math.inf
    """The seconds that one look-up may take."""
    lost: float = 0.0
    gone: RemoteError | None = None
    _has_answered: bool = False
    _counted: float = 0.0
    """The moment up to which lost time is counted: requests that fail side by side lose the same seconds."""

    def renew(self) -> None:
        """Begin to count the lost seconds anew."""
        self.lost, self.gone = 0.0, None

    def _lose(self, start: float, end: float, error: RemoteError | None = None) -> None:
        self.lost += max(0.0, end - max(start, self._counted))
        self._counted = max(self._counted, end)
        if self.lost >= (self.budget if self._has_answered else min(self.budget, self.first)):
            self.gone = self.gone or error

    async def _within(self, seconds: float, request: Callable[[], Awaitable[T]]) -> T:
        try:
            async with asyncio.timeout(None if math.isinf(seconds) else seconds):
                return await request()
        except TimeoutError:
            raise RemoteError(f"an answer took longer than {seconds:.0f} s") from None

    async def make(self, request: Callable[[], Awaitable[T]], *, seconds: float = math.inf) -> T:
        """Return the result of a request that is made up to `tries` times, each time for at most some seconds.

        Raises MissingError, DeniedError and RefusedError at once, and RemoteError after the last attempt.
        """
        for number in range(1, self.tries + 1):
            if self.gone is not None:
                raise self.gone
            start = time.monotonic()
            try:
                result = await self._within(seconds, request)
            except (MissingError, DeniedError, RefusedError) as error:
                self._has_answered = True
                if time.monotonic() - start > _SLOW:
                    self._lose(start, time.monotonic(), error)
                raise
            except RemoteError as error:
                self._lose(start, time.monotonic(), error)
                if number == self.tries or self.gone is not None:
                    raise
            else:
                self._has_answered = True
                return result
            pause = self.pause * 2 ** (number - 1) * random.uniform(0.5, 1.0)  # noqa: S311 - spreads clients
            now = time.monotonic()
            self._lose(now, now + pause)
            await asyncio.sleep(pause)
        raise AssertionError("a request has at least one attempt")


def patient() -> Attempts:
    """Return the attempts of a command whose purpose is the remote, such as `recipe cache push`."""
    return Attempts(tries=6, budget=60.0, first=9.0, pause=0.5)


def brief() -> Attempts:
    """Return the attempts of a build, which goes on without the remote after a few seconds."""
    return Attempts(tries=2, budget=4.0, look_up=8.0)


@dataclass(frozen=True)
class RetryingRemote:
    """A remote whose requests are repeated, as its attempts allow. Its methods are those of `GuardedRemote`."""

    remote: GuardedRemote
    attempts: Attempts

    @property
    def shown(self) -> str:
        """The remote in messages."""
        return self.remote.shown

    async def read(self, name: str, *, most: int, seconds: float = math.inf) -> bytes:
        """Return an object; an attempt takes at most some seconds. Raises MissingError, RefusedError, RemoteError."""
        return await self.attempts.make(lambda: self.remote.read(name, most=most), seconds=seconds)

    async def write(self, name: str, data: bytes, *, create: bool = False) -> bool:
        """Write an object; return whether it was written. Raises RemoteError."""
        return await self.attempts.make(lambda: self.remote.write(name, data, create=create))

    async def entry(self, name: str) -> Entry | None:
        """Return what is known of an object, or None for a missing object. Raises RemoteError."""
        return await self.attempts.make(lambda: self.remote.entry(name))

    async def listed(self, folder: str) -> list[Entry]:
        """Return the objects in a folder, by name. Raises RemoteError, also where nothing can list."""

        async def every() -> list[Entry]:
            return [entry async for entry in self.remote.list(folder)]

        return sorted(await self.attempts.make(every), key=lambda entry: entry.name)

    async def remove(self, name: str) -> None:
        """Remove an object. Raises RemoteError."""
        await self.attempts.make(lambda: self.remote.remove(name))
