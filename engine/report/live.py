"""Events on a terminal: a view of all jobs that changes while they run."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from engine.builder.executors.outcomes import last_lines
from engine.events import Awaits, Ended, Event, Finished, Moved, Noticed, Planned, Refused, RunsElsewhere, Started
from engine.report import plain
from engine.report.reasons import Reasons
from engine.report.transfers import TransferBars
from engine.system import streams

_MARKS = {
    "cached": ("=", "dim"),
    "built": ("+", "green"),
    "reproduced": ("=", "green"),
    "waiting": ("~", "yellow"),
    "failed": ("x", "bold red"),
    "skipped": (".", "dim"),
}
_FRAMES_PER_SECOND = 8
_OTHER_LINES, _LEAST_LINES = 4, 4
"""Lines of the screen that the view of the jobs leaves free, and the smallest number of lines that the view has."""


@dataclass
class _Line:
    """The line about one job in the view of all jobs."""

    recipe: str
    job: str
    started: float | None = None
    log: Path | None = None
    node: str = ""
    """The machine of a cluster that runs the job."""
    waits_for: str | None = None
    """The builder that runs the job, or the hardware that it needs, while this builder waits for its result."""
    ended: Ended | None = None
    spinner: Spinner = field(default_factory=lambda: Spinner("dots"))

    def begin(self, event: Started | RunsElsewhere | Awaits) -> None:
        """Note that the job runs, or what the build waits for."""
        if isinstance(event, Started):
            self.started, self.log, self.node = time.monotonic(), event.log, event.node
        else:
            self.waits_for = event.whom


class LiveReport:
    """Shows every job of a build with its state, its time and the last line of its log.

    Errors and tables are printed outside the changing view of the jobs, and stay on the screen.
    """

    def __init__(self, *, many: bool) -> None:
        self._many = many
        self._lines: dict[tuple[str, str], _Line] = {}
        self._console = Console(stderr=True)
        self._bars = TransferBars(self._console)
        self._live = Live(console=self._console, get_renderable=self._view, refresh_per_second=_FRAMES_PER_SECOND)
        self._finished: Finished | None = None
        self._reasons = Reasons()

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._live.stop()

    def on_event(self, event: Event) -> None:
        """Update the view of the jobs; print the error of a failed job above the view at once."""
        match event:
            case Noticed():
                self._console.print(f"note: {event.text}", markup=False)
            case Refused():
                for row in plain.lines(event, many=self._many):
                    self._console.print(Text(row))
            case Planned():
                for job, _ in event.jobs:
                    self._lines[event.recipe, job] = _Line(event.recipe, job)
            case Started() | RunsElsewhere() | Awaits():
                self._lines[event.recipe, event.job].begin(event)
            case Moved():
                self._bars.show(event)
            case Ended():
                self._lines[event.recipe, event.job].ended = event
                self._explain(event)
            case Finished():
                self._finished = event

    def finish(self, data: str) -> None:
        """Print the result of the build, the tables and the packages below the view of the jobs."""
        if self._finished is None:
            return
        end = self._finished
        self._console.print(plain.last_line(end.state, f"{end.seconds:.1f}", int(end.exit)), highlight=False)
        streams.write_last(data)

    def _explain(self, event: Ended) -> None:
        for line in plain.warnings(event):
            self._live.console.print(Text(line, style="yellow"))
        if event.error is not None:
            title = f"{event.recipe} {event.job}" if self._many else event.job
            self._live.console.print(Text(f"{title} failed", style="bold red"))
            for line in self._reasons.lines(event):
                self._live.console.print(Text(line))

    def _view(self) -> RenderableType:
        grid = Table.grid(padding=(0, 1))
        for line in self._visible():
            grid.add_row(*self._row(line))
        return Group(grid, self._bars.progress) if self._bars.progress.tasks else Group(grid)

    def _visible(self) -> Iterator[_Line]:
        """Yield the lines to show: of all jobs, or on a small screen of jobs that run, failed or wait for hardware."""
        room = max(_LEAST_LINES, self._console.height - _OTHER_LINES)
        lines = list(self._lines.values())
        if len(lines) > room:
            lines = [line for line in lines if _is_news(line)][-room:]
        yield from lines

    def _row(self, line: _Line) -> tuple[RenderableType, ...]:
        name = Text(f"{line.recipe}  {line.job}" if self._many else line.job)
        if line.ended is not None:
            mark, style = _MARKS[line.ended.state]
            took = f"{line.ended.seconds:.1f} s" if line.ended.state == "built" else ""
            remark = plain.how_to_continue(line.ended) if line.ended.waits_for else ""
            if line.ended.arrival is not None:
                remark = plain.how_it_came(line.ended.arrival)
            return (Text(mark, style), name, Text(line.ended.state, style), Text(took), Text(remark, "yellow"))
        if line.started is not None:
            elapsed = f"{time.monotonic() - line.started:.1f} s"
            doing = " ".join(last_lines(line.log, 1)) if line.log else ""
            shown = Text(doing, "dim", overflow="ellipsis", no_wrap=True)
            return (line.spinner, name, Text(plain.running(line.node), "cyan"), Text(elapsed), shown)
        if line.waits_for is not None:
            return (line.spinner, name, Text("waiting", "yellow"), Text(""), Text(f"for {line.waits_for}", "yellow"))
        return (Text(" "), name, Text("", "dim"), Text(""), Text(""))


def _is_news(line: _Line) -> bool:
    """Tell whether a line is about a job that runs, failed or waits for hardware."""
    if line.ended is not None:
        return line.ended.state in ("failed", "waiting")
    return line.started is not None or line.waits_for is not None
