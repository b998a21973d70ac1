"""What is on its way between a store and its remote, and the events about it: at most one a second."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from engine.events import Direction, Moved

PULSE = 1.0
"""Seconds between two events about a direction, and before the first one: a short transfer is no news."""


@dataclass
class Moving:
    """The transfers in one direction. Several threads count.

    Transfers that overlap count together; a transfer that begins while no other is under way begins anew with 0 bytes.
    """

    direction: Direction
    jobs: list[str] = field(default_factory=list)
    """The jobs whose artifacts are on their way."""
    done: int = 0
    """Bytes of files that are there: they have travelled, or were there before."""
    total: int = 0
    since: float = 0.0
    """When the first of the transfers began."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def transfer(self, job: str, size: int) -> Iterator[None]:
        """Count an artifact of `size` bytes as on its way during the block."""
        with self._lock:
            if not self.jobs:
                self.done, self.total, self.since = 0, 0, time.monotonic()
            self.jobs.append(job)
            self.total += size
        try:
            yield
        finally:
            with self._lock:
                self.jobs.remove(job)

    def advance(self, size: int) -> None:
        """Count bytes of a file as there."""
        with self._lock:
            self.done += size

    def moved(self, remote: str) -> Moved:
        """Return the event about the present state."""
        with self._lock:
            return Moved(self.direction, remote, tuple(self.jobs), min(self.done, self.total), self.total)


class Watch:
    """Turns what moves into events, when it is called: about each direction at most one a second, and a last one."""

    def __init__(self, remote: str, moving: tuple[Moving, ...], on_event: Callable[[Moved], None]) -> None:
        self._remote = remote
        self._moving = moving
        self._on_event = on_event
        self._last: dict[Direction, float] = {}
        """When the last event about transfers came that are not over."""

    def __call__(self) -> None:
        """Hand on what is new."""
        for each in self._moving:
            moved, now = each.moved(self._remote), time.monotonic()
            if not moved.jobs:
                if self._last.pop(each.direction, None) is not None:
                    self._on_event(moved)
            elif now - max(each.since, self._last.get(each.direction, 0.0)) >= PULSE:
                self._last[each.direction] = now
                self._on_event(moved)
