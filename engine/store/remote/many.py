"""Many objects of a remote at a time: list them, and do the same with each."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from engine.store.remote.attempts import Attempts
from engine.store.remote.background import together
from engine.store.remote.guard import GuardedPlace
from engine.store.remote.objects import Entry

T = TypeVar("T")
_AT_ONCE = 16


async def listed(place: GuardedPlace, attempts: Attempts, folder: str) -> list[Entry]:
    """Return the objects in a folder of a remote, by name. Raises RemoteError, also where nothing can list."""

    async def every() -> list[Entry]:
        return [entry async for entry in place.list(folder)]

    return sorted(await attempts.make(every), key=lambda entry: entry.name)


async def each(items: Iterable[T], work: Callable[[T], Awaitable[None]]) -> None:
    """Do the same with many objects, several at a time. Raises the first error."""
    slots = asyncio.Semaphore(_AT_ONCE)

    async def one(item: T) -> None:
        async with slots:
            await work(item)

    async with together() as group:
        for item in items:
            group.create_task(one(item))
