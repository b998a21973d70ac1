"""Events on a terminal: a view of all jobs that changes while they run."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from engine.builder.executors.executor import default_slots
from engine.builder.executors.outcomes import last_lines
from engine.events import Awaits, Ended, Event, Finished, Moved, Noticed, Planned, Refused, RunsElsewhere, Started
from engine.report import plain
from engine.report.plain import PrintedErrors
from engine.report.progress import RemainingJobs, TransferBars
from engine.report.results import Results
from engine.system import streams
from engine.text import lists

_MARKS = {
    "cached": ("=", "dim"),
    "built": ("+", "green"),
    "reproduced": ("=", "green"),
    "waiting": ("~", "yellow"),
    "failed": ("x", "bold red"),
    "skipped": (".", "dim"),
    "stopped": ("!", "yellow"),
}
_FRAMES_PER_SECOND = 8
_OTHER_LINES, _LEAST_LINES = 4, 4
"""Lines of the screen that the view of the jobs leaves free, and the smallest number of lines that the view has."""
_NAMES = 0.45
"""The largest part of the width that the names of jobs take."""
_LEFT_OF_REMARKS = 30
"""The characters of a row before its remark, about."""
_STARTS = 4
"""The part of a cut name, as one of so many, that its start has."""
_STATES, _TIMES = 8, 7
"""The widths of the columns with states and with times, in characters."""


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
    stopped: float | None = None
    """When an interruption stopped the job."""
    spinner: Spinner = field(default_factory=lambda: Spinner("dots"))

    def begin(self, event: Started | RunsElsewhere | Awaits) -> None:
        """Note that the job runs, or what the build waits for."""
        if isinstance(event, Started):
            self.started, self.log, self.node = time.monotonic(), event.log, event.node
        else:
            self.waits_for = event.whom

    @property
    def is_active(self) -> bool:
        """Whether the job runs, or the build waits for another builder or machine that makes its result."""
        return self.ended is None and (self.started is not None or self.waits_for is not None)


class LiveReport:
    """Shows every job of a build with its state, its time and the last line of its log.

    Errors and tables are printed outside the changing view of the jobs, and stay on the screen. With `folded`, or where
    the screen is too small for all jobs, jobs that have ended are counted. Jobs that run are always visible.
    """

    def __init__(self, *, many: bool, folded: bool = False, parallel: int | None = None) -> None:
        """`parallel` is how many jobs may run at a time, if the user says so."""
        self._many = many
        self._is_folded = folded
        self._lines: dict[tuple[str, str], _Line] = {}
        self._console = Console(stderr=True)
        self._bars = TransferBars(self._console)
        self._remaining = RemainingJobs(parallel or default_slots())
        self._finished: Finished | None = None
        self._failed: list[Event] = []
        self._reasons = PrintedErrors()
        self._live = Live(console=self._console, get_renderable=self._view, refresh_per_second=_FRAMES_PER_SECOND)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._live.stop()

    def on_event(self, event: Event) -> None:
        """Update the view of the jobs; print the error of a failed job above the view at once."""
        self._remaining.take(event)
        match event:
            case Noticed():
                self._console.print(f"note: {event.text}", markup=False)
            case Refused():
                self._failed.append(event)
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
                self._finish(event)

    def finish(self, results: Results) -> None:
        """Print the result of the build, the tables and the packages below the view of the jobs, and errors last."""
        if self._finished is None:
            return
        end = self._finished
        self._say_what_was_cut()
        style = {"failed": "bold red", "interrupted": "yellow", "waiting": "yellow"}.get(end.state, "green")
        last = Text(plain.last_line(end.state, f"{end.seconds:.1f}", int(end.exit)), style)
        self._console.print(last, highlight=False)
        streams.write_last(results.brief if self._is_folded else results.whole)
        for row in plain.failures(self._failed, many=self._many):
            self._console.print(Text(row, style))

    def _say_what_was_cut(self) -> None:
        """Print what the jobs wait for, where the view of the jobs has no room for the whole sentence."""
        folded = plain.JobCounts()
        for line in self._lines.values():
            if line.ended is not None:
                folded.take(line.ended)
        for state, remark in folded.rows():
            if state == "waiting" and len(remark) + _LEFT_OF_REMARKS > self._console.width:
                self._console.print(Text(f"waiting: {remark}", "yellow"))

    def _finish(self, event: Finished) -> None:
        self._finished = event
        if event.state == "interrupted":
            for line in self._lines.values():
                if line.is_active and line.started is not None:
                    line.stopped = time.monotonic()

    def _explain(self, event: Ended) -> None:
        for line in plain.warnings(event):
            self._live.console.print(Text(line, style="yellow"))
        if event.error is not None:
            self._failed.append(event)
            title = f"{event.recipe} {event.job}" if self._many else event.job
            self._live.console.print(Text(f"{title} failed", style="bold red"))
            for line in self._reasons.lines(event):
                self._live.console.print(Text(line, style="cyan" if line.startswith("  hint:") else ""))

    def _view(self) -> RenderableType:
        room = max(_LEAST_LINES, self._console.height - _OTHER_LINES - len(self._bars.progress.tasks))
        rows = [*self._rows(room)]
        if self._finished is None and self._lines:
            rows.append(Text(self._remaining.line(), "bold", overflow="ellipsis", no_wrap=True))
        return Group(*rows, self._bars.progress) if self._bars.progress.tasks else Group(*rows)

    def _rows(self, room: int) -> Iterator[RenderableType]:
        """Yield at most `room` rows: of all jobs; or counts of those that have ended, and those with news."""
        lines = list(self._lines.values())
        if len(lines) <= room and not self._is_folded:
            yield from self._aligned(lines)
            return
        counts = list(self._counts(lines))
        active = [line for line in lines if line.is_active or line.stopped is not None]
        failed = [line for line in lines if line.ended is not None and line.ended.state == "failed"]
        left = room - len(counts)
        shown = active[:left] if len(active) <= left else active[: max(left - 1, 1)]
        kept = max(left - len(shown), 0)
        yield from counts
        yield from self._aligned([*(failed[-kept:] if kept else []), *shown])
        if len(active) > len(shown):
            yield Text(f"  and {len(active) - len(shown)} more", "dim")

    def _counts(self, lines: Sequence[_Line]) -> Iterator[Text]:
        """Yield a row for all cached jobs, for those that wait for one device, and for those that were built."""
        folded = plain.JobCounts()
        built = 0
        for line in lines:
            if line.ended is not None and not folded.take(line.ended):
                built += line.ended.state in ("built", "reproduced")
        rows = list(folded.rows())
        if built:
            rows.insert(0, ("built", lists.counted(built, "job")))
        for state, remark in rows:
            mark, style = _MARKS[state]
            yield _row((mark, style), (f"{state:<{_STATES}}", style), (remark, "yellow" if state == "waiting" else ""))

    def _aligned(self, lines: Sequence[_Line]) -> Iterator[RenderableType]:
        most = int(self._console.width * _NAMES)
        width = min(max((len(self._name(line)) for line in lines), default=0), most)
        for line in lines:
            yield self._line(line, _shortened(self._name(line), width))

    def _name(self, line: _Line) -> str:
        return f"{line.recipe}  {line.job}" if self._many else line.job

    def _line(self, line: _Line, name: str) -> RenderableType:
        if line.ended is not None:
            mark, style = _MARKS[line.ended.state]
            took = f"{line.ended.seconds:.1f} s" if line.ended.state == "built" else ""
            if line.ended.waits_for is not None:
                whole = "; ".join(filter(None, [f"waiting for {line.ended.waits_for}", line.ended.advice]))
                return _job(mark, name, whole, "", ("", ""), style=style)
            remark = plain.how_it_came(line.ended.arrival) if line.ended.arrival is not None else ""
            return _job(mark, name, line.ended.state, took, (remark, "yellow"), style=style)
        if line.stopped is not None and line.started is not None:
            mark, style = _MARKS["stopped"]
            took = f"{line.stopped - line.started:.1f} s"
            return _job(mark, name, "stopped", took, ("interrupted; nothing of it is kept", style), style=style)
        if line.started is not None:
            elapsed = f"{time.monotonic() - line.started:.1f} s"
            doing = " ".join(last_lines(line.log, 1)) if line.log else ""
            state = f"running on {line.node}" if line.node else "running"
            return _job(_frame(line.spinner), name, state, elapsed, (doing, "dim"), style="cyan")
        if line.waits_for is not None:
            return _job(_frame(line.spinner), name, f"waiting for {line.waits_for}", "", ("", ""), style="yellow")
        return _job(" ", name, "", "", ("", ""))


def _frame(spinner: Spinner) -> str:
    return str(spinner.render(time.monotonic()))


def _shortened(name: str, width: int) -> str:
    """Return a name in `width` characters; the middle of a longer one is cut, because the ends of variants differ."""
    if len(name) <= width:
        return f"{name:<{width}}"
    start = width // _STARTS
    return f"{name[:start]}…{name[len(name) - width + start + 1 :]}"


def _job(mark: str, name: str, state: str, took: str, remark: tuple[str, str], *, style: str = "") -> Text:
    times = f"{took:>{_TIMES}}"
    return _row((mark, style), (name, ""), (f"{state:<{_STATES}}", style), (times, ""), remark)


def _row(*cells: tuple[str, str]) -> Text:
    """Return a row of one line: what the terminal has no room for is cut at the end."""
    row = Text(" ".join(text for text, _ in cells).rstrip(), overflow="ellipsis", no_wrap=True)
    start = 0
    for text, style in cells:
        row.stylize(style, start, start + len(text))
        start += len(text) + 1
    return row
