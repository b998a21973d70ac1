"""The bar of a transfer on a terminal: what moves, how many bytes of how many, and how fast."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from engine.text import lists

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

    from engine.events import Direction, Moved

_WORDS: dict[Direction, str] = {"in": "from", "out": "to"}
_MOST = 3
"""The most jobs that a bar names."""


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
        self.progress.update(
            self._tasks[event.direction], description=title(event), completed=event.done, total=event.total
        )


def title(event: Moved) -> str:
    """Return what moves, and where: "export, fuse to s3://team/recipe"."""
    names = list(dict.fromkeys(event.jobs))
    return f"{lists.first_of(names, _MOST)} {_WORDS[event.direction]} {event.remote}"


@contextmanager
def bar(what: str, *, total: int | None = None) -> Iterator[Callable[[int], None]]:
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
