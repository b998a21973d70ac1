"""Events and records -> terminal, plain lines, JSON lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, Self

if TYPE_CHECKING:
    from engine.builder.summary import Summary
    from engine.events import Event


class Report(Protocol):
    """What a build is told to; a context manager, so that a terminal is left as it was found."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *exception: object) -> None: ...

    def on_event(self, event: Event) -> None:
        """Take the next event of a build."""

    def finish(self, summaries: Sequence[Summary]) -> None:
        """Say what was built, after the last event."""
