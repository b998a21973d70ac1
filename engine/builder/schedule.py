"""The order of jobs: the job with the longest expected chain of later jobs goes first."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

Name = TypeVar("Name", bound=Hashable)
Item = TypeVar("Item")

UNKNOWN_SECONDS = 1.0
"""The expected duration in seconds of a job for which the store has no measured duration."""


def urgencies(jobs: Sequence[tuple[Name, Iterable[Name]]], seconds: Mapping[Name, float]) -> dict[Name, float]:
    """Return for each job the seconds from its start to the end of the longest chain of jobs that need it.

    `jobs` are pairs of a job and the jobs that it needs; a job comes after the jobs that it needs.
    """
    behind: dict[Name, float] = {}
    for name, needs in reversed(jobs):
        behind[name] = behind.get(name, 0.0) + seconds.get(name, UNKNOWN_SECONDS)
        for needed in needs:
            behind[needed] = max(behind.get(needed, 0.0), behind[name])
    return behind


class Queue(Generic[Item]):
    """A queue that gives out the most urgent item first, and equally urgent items in the order of their arrival."""

    def __init__(self, count: Iterator[int] | None = None) -> None:
        """`count` numbers the items in the order of their arrival; queues that are compared have one count."""
        self._heap: list[tuple[float, int, Item]] = []
        self._count = itertools.count() if count is None else count

    def __len__(self) -> int:
        return len(self._heap)

    @property
    def first(self) -> tuple[float, int]:
        """The rank of the most urgent item: queues are compared by it. Raises IndexError for an empty queue."""
        return self._heap[0][:2]

    def add(self, item: Item, urgency: float) -> None:
        """Queue an item."""
        heapq.heappush(self._heap, (-urgency, next(self._count), item))

    def take(self) -> Item:
        """Remove the most urgent item from the queue and return the item. Raises IndexError for an empty queue."""
        return heapq.heappop(self._heap)[2]


class Lanes(Generic[Item]):
    """A queue for each lane. The items of a lane need the same: the same kind of machine, with the same room on it."""

    def __init__(self) -> None:
        self._lanes: dict[Hashable, Queue[Item]] = {}
        self._count = itertools.count()

    def add(self, item: Item, urgency: float, lane: Hashable) -> None:
        """Queue an item in its lane."""
        if lane not in self._lanes:
            self._lanes[lane] = Queue(self._count)
        self._lanes[lane].add(item, urgency)

    def take(self, has_room: Callable[[Any], bool] = lambda _: True) -> Item | None:
        """Remove and return the most urgent item of the lanes for which there is room; None without such an item."""
        for lane in sorted(self._lanes, key=lambda lane: self._lanes[lane].first):
            if has_room(lane):
                item = self._lanes[lane].take()
                if not self._lanes[lane]:
                    del self._lanes[lane]
                return item
        return None
