"""An event loop in a thread of its own, for the requests of a program that is not asynchronous."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from concurrent import futures
from concurrent.futures import Future
from contextlib import asynccontextmanager
from typing import Any, TypeVar

T = TypeVar("T")

_PULSE = 0.5
"""Seconds between two calls of `on_pulse`."""


@asynccontextmanager
async def together() -> AsyncIterator[asyncio.TaskGroup]:
    """Yield a group of tasks. The first error of a task ends the others, and is raised as it is."""
    try:
        async with asyncio.TaskGroup() as group:
            yield group
    except BaseExceptionGroup as errors:
        raise _first(errors) from None


def _first(error: BaseException) -> BaseException:
    return _first(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error


class Background:
    """Runs coroutines in a daemon thread, so that a request that hangs never keeps the process alive."""

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
            return self.result(future)
        except BaseException:
            future.cancel()
            raise

    def result(self, future: Future[T]) -> T:
        """Wait for the result of a future, and return it."""
        self.wait([future])
        return future.result()

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
