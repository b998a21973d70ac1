"""What is left of a build: how many jobs have ended, and about how long the others take."""

from __future__ import annotations

import time
from collections.abc import Iterable

from engine.events import Ended, Event, Planned, Started
from engine.text import durations

_LEAST = 1.0
"""The shortest time in seconds that is worth a forecast."""


class Remaining:
    """Counts the jobs of a build, and estimates the time until its end from the durations of earlier runs."""

    def __init__(self, parallel: int) -> None:
        """`parallel` is how many jobs may run at a time."""
        self._parallel = parallel
        self._began = time.monotonic()
        self._expected: dict[tuple[str, str], float | None] = {}
        self._started: dict[tuple[str, str], float] = {}
        self._ended: set[tuple[str, str]] = set()

    def take(self, event: Event) -> None:
        """Note an event of the build."""
        match event:
            case Planned():
                seconds = dict(event.seconds)
                self._expected |= {(event.recipe, job): seconds.get(job) for job, _ in event.jobs}
            case Started():
                self._started[event.recipe, event.job] = time.monotonic()
            case Ended():
                self._started.pop((event.recipe, event.job), None)
                self._ended.add((event.recipe, event.job))

    def line(self) -> str:
        """Return how far the build is: "12 of 270 jobs, 2 running, 42 s, about 3.1 min left"."""
        parts = [f"{len(self._ended)} of {len(self._expected)} jobs"]
        if self._started:
            parts.append(f"{len(self._started)} running")
        parts.append(durations.rounded(time.monotonic() - self._began))
        return ", ".join([*parts, *self._left()])

    def _left(self) -> Iterable[str]:
        """Yield the expected time until the end; nothing where no duration is known, or nothing runs."""
        now = time.monotonic()
        running = {job: now - began for job, began in self._started.items()}
        # Variants share jobs: equal names with equal seconds are most likely one run.
        open_jobs = {
            (job[1], seconds): max(seconds - running.get(job, 0.0), 0.0)
            for job, seconds in self._expected.items()
            if job not in self._ended and seconds is not None
        }
        unknown = {job[1] for job, seconds in self._expected.items() if job not in self._ended and seconds is None}
        if open_jobs and running:
            longest = max(open_jobs.values())
            seconds = max(sum(open_jobs.values()) / self._parallel, longest)
            if seconds < _LEAST:
                return
            yield f"{'more than' if unknown else 'about'} {durations.rounded(seconds)} left"
