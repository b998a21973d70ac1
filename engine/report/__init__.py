"""Reports: the events and records of a build on a terminal, as plain lines, or as lines of JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Self

if TYPE_CHECKING:
    from engine.events import Event
    from engine.report.results import Results


class BuildReport(Protocol):
    """Receives and shows the events of a build; a context manager whose end restores the terminal."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *exception: object) -> None: ...

    def on_event(self, event: Event) -> None:
        """Show the next event of a build."""

    def finish(self, results: Results) -> None:
        """Show the results of the build; called after the last event."""
