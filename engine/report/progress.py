"""Progress on a terminal: bars of what moves to and from a remote, and how much of a build is left."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from engine.events import Ended, Event, Planned, Started
from engine.text import lists, quantities

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

    from engine.events import Direction, Moved


_WORDS: dict[Direction, str] = {"in": "from", "out": "to"}
_MOST = 3
"""The most jobs that a bar names."""
_LEAST = 1.0
"""The shortest time in seconds that is worth a forecast."""


class TransferBars:
    """A bar for each direction in which something moves; `progress` is what a terminal shows."""

    def __init__(self, console: Console) -> None:
        self.progress = _progress(console)
        self._tasks: dict[Direction, TaskID] = {}

    def show(self, event: Moved) -> None:
        """Bring the bar of a direction up to date; the last event about it removes the bar."""
        if not event.jobs:
            if event.direction in self._tasks:
                self.progress.remove_task(self._tasks.pop(event.direction))
            return
        if event.direction not in self._tasks:
            self._tasks[event.direction] = self.progress.add_task("", total=None)
        jobs = lists.first_of(list(dict.fromkeys(event.jobs)), _MOST)
        title = f"{jobs} {_WORDS[event.direction]} {event.remote}"  # "export, fuse to s3://team/recipe"
        task = self._tasks[event.direction]
        self.progress.update(task, description=title, completed=event.done, total=event.total)


@contextmanager
def transfer_bar(what: str, *, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """Show a bar on a terminal inside the block; yield a function that takes the number of further bytes."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console

    with _progress(Console(stderr=True)) as progress:
        task = progress.add_task(what, total=total)
        yield lambda count: progress.advance(task, count)


def _progress(console: Console) -> Progress:
    from rich.progress import BarColumn, DownloadColumn, Progress, SpinnerColumn, TextColumn, TransferSpeedColumn

    columns = (
        SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(),
        TransferSpeedColumn(),
    )  # fmt: skip
    return Progress(*columns, console=console, transient=True)


class RemainingJobs:
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
        parts.append(quantities.duration(time.monotonic() - self._began))
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
            yield f"{'more than' if unknown else 'about'} {quantities.duration(seconds)} left"
