"""Work that is cheaper for many things at a time: what arrives while a batch is under way makes the next batch."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Batches(Generic[T]):
    """Calls a function with lists of things, one call at a time, in a thread, while an event loop collects more."""

    def __init__(self, work: Callable[[Sequence[T]], Any], *, most: int, pause: float = 0.0) -> None:
        """`most` is the length of the longest list, and the number of things that wait at most.

        `pause` is the time in seconds for which a list that is not full waits for more.
        """
        self._work = work
        self._most = most
        self._pause = pause
        self._is_full = asyncio.Event()
        self._waiting: list[T] = []
        self._task: asyncio.Task[None] | None = None
        self._has_room = asyncio.Event()

    async def add(self, thing: T) -> None:
        """Add a thing to the next list, once it has room. Raises what the work raises."""
        while len(self._waiting) >= self._most:
            self._has_room.clear()
            await self._has_room.wait()
        self._waiting.append(thing)
        if len(self._waiting) >= self._most:
            self._is_full.set()
        if self._task is None:
            self._task = asyncio.create_task(self._run())
        elif self._task.done():
            self._task.result()
            self._task = asyncio.create_task(self._run())

    async def end(self) -> None:
        """Wait until all is done. Raises what the work raises."""
        self._pause = 0.0
        self._is_full.set()
        if self._task is not None:
            await self._task

    async def _run(self) -> None:
        try:
            while self._waiting:
                if self._pause and len(self._waiting) < self._most:
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(self._is_full.wait(), self._pause)
                self._is_full.clear()
                batch, self._waiting = self._waiting, []
                self._has_room.set()
                await asyncio.to_thread(self._work, batch)
        finally:
            self._waiting = []
            self._has_room.set()
