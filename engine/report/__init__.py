"""Reports: the events and records of a build on a terminal, as plain lines, or as lines of JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, Self

if TYPE_CHECKING:
    from engine.builder.summary import Summary
    from engine.events import Event


class BuildReport(Protocol):
    """A receiver of a build's events, used as a context manager: the end of the context restores the terminal."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *exception: object) -> None: ...

    def on_event(self, event: Event) -> None:
        """Show the next event of a build."""

    def finish(self, summaries: Sequence[Summary]) -> None:
        """Show the results of the build, after its last event."""
