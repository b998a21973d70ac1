"""Requests side by side: an event loop in a thread of its own, groups of tasks, and work in batches."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Sequence
from concurrent import futures
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

T = TypeVar("T")

_PULSE = 0.5
"""Seconds between two calls of `on_pulse`."""
AT_ONCE = 16
"""Requests at a time, where many are alike."""


@contextlib.asynccontextmanager
async def together() -> AsyncIterator[asyncio.TaskGroup]:
    """Yield a group of tasks. The first error of a task ends the others, and is raised as it is."""
    try:
        async with asyncio.TaskGroup() as group:
            yield group
    except BaseExceptionGroup as errors:
        raise _first(errors) from None


def _first(error: BaseException) -> BaseException:
    return _first(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error


async def each(items: Iterable[T], work: Callable[[T], Awaitable[object]]) -> None:
    """Do the same with many items, several at a time. Raises the first error."""
    left = iter(items)

    async def worker() -> None:
        for item in left:
            await work(item)

    async with together() as group:
        for _ in range(AT_ONCE):
            group.create_task(worker())


class Background:
    """Runs coroutines for a program that is not asynchronous.

    They run in a daemon thread, so that a request that hangs never keeps the process alive.
    """

    def __init__(self) -> None:
        self.on_pulse: Callable[[], None] = lambda: None
        """Called about twice a second in a thread that waits for a result, in this thread."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="remote", daemon=True)
        self._thread.start()

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start a coroutine and return its future."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine and return its result. An interrupt ends the coroutine, too."""
        future = self.start(work)
        try:
            self.wait([future])
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def wait(self, every: Iterable[Future[Any]]) -> None:
        """Wait until all futures have ended. This thread wakes up once, and not for each of them."""
        left = {future for future in every if not future.done()}
        while left and (left := futures.wait(left, timeout=_PULSE).not_done):
            self.on_pulse()

    def close(self) -> None:
        """End the thread. What is still running is cancelled."""

        async def cancel() -> None:
            tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        if self._thread.is_alive():
            asyncio.run_coroutine_threadsafe(cancel(), self._loop).result(timeout=5)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(timeout=5)


class Batches(Generic[T]):
    """Work that is cheaper for many things at a time: what arrives while a batch is under way makes the next batch.

    Calls a function with lists of things, one call at a time, in a thread, while an event loop collects more.
    """

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
