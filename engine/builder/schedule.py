"""The order of jobs: the job with the longest expected chain of later jobs goes first."""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Generic, TypeVar

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

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Item]] = []
        self._count = 0

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, item: Item, urgency: float) -> None:
        """Queue an item."""
        self._count += 1
        heapq.heappush(self._heap, (-urgency, self._count, item))

    def take(self) -> Item:
        """Remove the most urgent item from the queue and return the item. Raises IndexError for an empty queue."""
        return heapq.heappop(self._heap)[2]
