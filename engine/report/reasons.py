"""Reasons: an error is told once, and whatever fails just like it points there."""

from __future__ import annotations

from engine.events import Ended


class Reasons:
    """The errors that were told so far, each with the first job that failed of it."""

    def __init__(self) -> None:
        self._first: dict[str, str] = {}

    def lines(self, event: Ended) -> list[str]:
        """Return the error of a job as indented lines: variants that share a job share its error."""
        told = str(event.error)
        if told in self._first:
            return [f"  as {self._first[told]} above"]
        self._first[told] = f"{event.recipe} {event.job}"
        return [f"  {line}" for line in told.splitlines()]
