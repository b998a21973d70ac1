"""Folding: in a build of many variants, jobs that need no attention are one line each: cached ones, waiting ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from engine.events import Ended
from engine.text import lists

MANY = 4
"""The largest number of variants whose jobs and tables are printed one by one, unless -v asks for all."""
WIDTH = 9
"""The width of the column with the state of a job, in characters."""


class Folded:
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
            yield "cached", _jobs(self._cached.values())
        for device, advice in self._waiting.items():
            what = f"{lists.counted(len(advice), 'job')} for {device}"
            yield "waiting", "; ".join(filter(None, [what, *dict.fromkeys(advice)]))
        if self._skipped:
            yield "skipped", f"{_jobs(self._skipped.values())}, because an earlier job failed or waits"

    def lines(self) -> list[str]:
        """Return the rows as lines of text."""
        return [f"{state:<{WIDTH}}{remark}" for state, remark in self.rows()]


def _jobs(counts: Iterable[int]) -> str:
    by_variant = list(counts)
    return f"{lists.counted(sum(by_variant), 'job')} of {lists.counted(len(by_variant), 'variant')}"
