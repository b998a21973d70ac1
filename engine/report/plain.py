"""Events as plain lines of text, for CI and logs."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator

from engine.builder.trace import gaps
from engine.errors import UserError
from engine.events import (
    Arrival,
    Awaits,
    Ended,
    Event,
    Finished,
    Moved,
    Noticed,
    Planned,
    Refused,
    RunsElsewhere,
    Started,
)
from engine.report import ci
from engine.report.results import BuildReport, Results
from engine.system import colors, streams
from engine.text import lists, quantities

_WIDTH = 9
"""The width of the column with the state of a job, in characters."""
_STYLES: dict[str, colors.Style] = {
    "built": "green",
    "reproduced": "green",
    "waiting": "yellow",
    "stopped": "yellow",
    "failed": "bold red",
    "cached": "dim",
    "skipped": "dim",
}
"""The first word of a line -> its style."""


class PlainReport(BuildReport):
    """Prints events to standard error, and at the end the tables and the packages' folders to standard output.

    With `folded`, jobs that need no attention are counted, and printed as one line at the end. With `quiet`, only
    errors and warnings are printed, and the packages' folders.
    """

    def __init__(self, *, many: bool, folded: bool = False, quiet: bool = False) -> None:
        self._many = many
        self._quiet = quiet
        self._is_folded = folded
        self._folded = JobCounts()
        self._started: dict[tuple[str, str], float] = {}
        self._reasons = PrintedErrors()
        self._failed: list[Event] = []
        self._state = "interrupted"

    def on_event(self, event: Event) -> None:
        """Print the lines about an event."""
        for line in self._lines(event):
            print(_painted(line), file=sys.stderr, flush=True)
        match event:
            case Ended(error=UserError() as error) | Refused(error=UserError() as error):
                self._failed.append(event)
                for line in ci.github_commands(error):
                    print(line, file=sys.stderr, flush=True)
            case Finished():
                self._state = event.state

    def _lines(self, event: Event) -> list[str]:
        match event:
            case Started():
                self._started[event.recipe, event.job] = time.monotonic()
            case Ended():
                self._started.pop((event.recipe, event.job), None)
                if self._is_folded and self._folded.take(event):
                    return []
        if self._quiet:
            return lines(event, many=self._many, reasons=self._reasons) if _is_trouble(event) else []
        before = self._before_the_end(event.state) if isinstance(event, Finished) else []
        return [*before, *lines(event, many=self._many, reasons=self._reasons)]

    def _before_the_end(self, state: str) -> list[str]:
        """Return the lines about jobs that are counted, and about jobs that an interruption has stopped."""
        if state != "interrupted":
            return self._folded.lines()
        now = time.monotonic()
        stopped = [
            f"{_row('stopped', recipe, job, many=self._many)}  after {now - began:.1f} s; nothing of it is kept"
            for (recipe, job), began in self._started.items()
        ]
        return [*self._folded.lines(), *stopped]

    def finish(self, results: Results) -> None:
        """Print the tables and the packages' folders, then the errors again; also into GitHub's summary."""
        ci.summarize_for_github(f"recipe build: {self._state}", results.whole)
        text = results.packages if self._quiet else results.brief if self._is_folded else results.whole
        streams.write_last(text)
        for line in failures(self._failed, many=self._many) if text else ():
            print(_painted(line), file=sys.stderr, flush=True)


def _is_trouble(event: Event) -> bool:
    is_warning = isinstance(event, Noticed) and event.is_warning
    return is_warning or isinstance(event, Refused) or (isinstance(event, Ended) and bool(event.error or event.gaps))


def _painted(line: str) -> str:
    """Return a line with the colours of its first word, where standard error has colours."""
    word, blank, rest = line.partition(" ")
    style = _STYLES.get(word)
    return f"{colors.paint(word, style, sys.stderr)}{blank}{rest}" if style else colors.error(line, sys.stderr)


def lines(event: Event, *, many: bool, reasons: PrintedErrors | None = None) -> list[str]:
    """Return an event's lines, which name the recipe if `many`; `reasons` remembers the errors printed before."""
    match event:
        case Noticed():
            return [f"note: {event.text}"]
        case Refused():
            return [f"{'failed':<{_WIDTH}}{event.path}", *(f"  {line}" for line in str(event.error).splitlines())]
        case Planned() | Moved():
            return []
        case Started() | RunsElsewhere() | Awaits():
            return _begun(event, many=many)
        case Ended():
            return [*_state(event, many=many, reasons=reasons or PrintedErrors()), *warnings(event)]
        case Finished():
            return [last_line(event.state, f"{event.seconds:.1f}", int(event.exit))]


def failures(events: Iterable[Event], *, many: bool) -> Iterator[str]:
    """Yield a line for each failed job and each wrong recipe, without the details of its error."""
    for event in events:
        match event:
            case Ended(error=UserError() as error):
                yield f"{_row('failed', event.recipe, event.job, many=many)}: {error.what}"
            case Refused():
                yield f"{'failed':<{_WIDTH}}{event.path}: {event.error.what}"


def last_line(state: str, seconds: str, code: int) -> str:
    """Return the last line of a build: its state, its seconds and its exit code."""
    return f"{state} in {seconds} s" + (f" (exit {code})" if code else "")


def how_to_continue(event: Ended | Awaits) -> str:
    """Return a remark that says how to continue with a job that waits for hardware."""
    return "; ".join(filter(None, (f"waits for: {event.waits_for}", event.advice)))


def how_it_came(arrival: Arrival) -> str:
    """Return a remark about a result that came from another machine: "arrived after 53 s, made on Tesla T4"."""
    origin = f", made on {arrival.machine}" if arrival.machine else ""
    return f"arrived after {quantities.duration(arrival.seconds)}{origin}"


def warnings(event: Ended) -> list[str]:
    """Return the lines about what a job of another package's step read without a row of its key."""
    if not event.gaps:
        return []
    title = f"  warning: {event.job} reads what no row of its key covers; if it changes, the job does not run again"
    return [title, *(f"    {gaps.sentence(gap)}" for gap in event.gaps)]


def _begun(event: Started | RunsElsewhere | Awaits, *, many: bool) -> list[str]:
    row = _row("running" if isinstance(event, Started) else "waiting", event.recipe, event.job, many=many)
    match event:
        case Started():
            return [f"{row}  on {event.node}" if event.node else row]
        case RunsElsewhere():
            return [row, f"  for {event.whom}"]
        case Awaits():
            return [row, f"  {how_to_continue(event)}"]


def _state(event: Ended, *, many: bool, reasons: PrintedErrors) -> list[str]:
    if event.state == "built":
        return [_row("built", event.recipe, event.job, many=many) + f"  {event.seconds:.1f} s"]
    head = _row(event.state, event.recipe, event.job, many=many)
    if event.error is not None:
        return [head, *reasons.lines(event)]
    if event.arrival is not None:
        return [f"{head}  {how_it_came(event.arrival)}"]
    if event.waits_for is not None:
        return [head, f"  {how_to_continue(event)}"]
    return [head]


def _row(state: str, recipe: str, job: str, *, many: bool) -> str:
    return f"{state:<{_WIDTH - 1}} {recipe + '  ' if many else ''}{job}"


class PrintedErrors:
    """The errors that were printed so far, each with the first job that failed with it."""

    def __init__(self) -> None:
        self._first: dict[str, str] = {}

    def lines(self, event: Ended) -> list[str]:
        """Return a failed job's error as indented lines, or a line that points to the same error of another variant."""
        error = str(event.error)
        if error in self._first:
            return [f"  as {self._first[error]} above"]
        self._first[error] = f"{event.recipe} {event.job}"
        return [f"  {line}" for line in error.splitlines()]


class JobCounts:
    """Counts jobs that have ended; has a line for all that are cached, and one for each device that jobs wait for."""

    def __init__(self) -> None:
        self._cached: dict[str, int] = {}
        self._waiting: dict[str, list[str]] = {}
        self._skipped: dict[str, int] = {}

    def take(self, event: Ended, count: int = 1) -> bool:
        """Count an event about the end of a job, or of `count` jobs; false, and nothing is counted, for news."""
        if event.error is not None or event.gaps or event.arrival is not None:
            return False
        match event.state:
            case "cached":
                self._cached[event.recipe] = self._cached.get(event.recipe, 0) + count
            case "skipped":
                self._skipped[event.recipe] = self._skipped.get(event.recipe, 0) + count
            case "waiting":
                self._waiting.setdefault(event.waits_for or "", []).extend([event.advice] * count)
            case _:
                return False
        return True

    def rows(self) -> Iterator[tuple[str, str]]:
        """Yield states with their remarks: `cached` and "990 jobs of 90 variants"."""
        if self._cached:
            yield "cached", _jobs_of_variants(self._cached.values())
        for device, advice in self._waiting.items():
            what = f"{lists.counted(len(advice), 'job')} for {device}"
            yield "waiting", "; ".join(filter(None, [what, *dict.fromkeys(advice)]))
        if self._skipped:
            yield "skipped", f"{_jobs_of_variants(self._skipped.values())}, because an earlier job failed or waits"

    def lines(self) -> list[str]:
        """Return the rows as lines of text."""
        return [f"{state:<{_WIDTH}}{remark}" for state, remark in self.rows()]


def _jobs_of_variants(counts: Iterable[int]) -> str:
    by_variant = list(counts)
    return f"{lists.counted(sum(by_variant), 'job')} of {lists.counted(len(by_variant), 'variant')}"
