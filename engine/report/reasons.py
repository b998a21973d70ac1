"""Reasons: the text of an error is printed once; later jobs with the same error point to the first one."""

from __future__ import annotations

from engine.events import Ended


class Reasons:
    """The errors that were printed so far, each with the first job that failed with it."""

    def __init__(self) -> None:
        self._first: dict[str, str] = {}

    def lines(self, event: Ended) -> list[str]:
        """Return a failed job's error as indented lines, or one line that points to the same error above.

        Variants that share a job fail with the same error.
        """
        error = str(event.error)
        if error in self._first:
            return [f"  as {self._first[error]} above"]
        self._first[error] = f"{event.recipe} {event.job}"
        return [f"  {line}" for line in error.splitlines()]
