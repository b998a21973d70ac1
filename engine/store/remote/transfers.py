"""Transfers between a store and its remote: what is on its way, and what came, went, was refused or failed."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from engine.errors import StoreError, UserError
from engine.events import Direction, Moved
from engine.store.remote.objects import RefusedError
from engine.text import lists, sizes

PULSE = 1.0
"""Seconds between two events about a direction, and before the first one: a short transfer is no news."""


@dataclass
class Moving:
    """The transfers in one direction. Several threads count.

    Transfers that overlap count together; a transfer that begins while no other is under way begins anew with 0 bytes.
    """

    direction: Direction
    jobs: list[str] = field(default_factory=list)
    """The jobs whose artifacts are on their way."""
    done: int = 0
    """Bytes of files that are there: they have travelled, or were there before."""
    total: int = 0
    since: float = 0.0
    """When the first of the transfers began."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def transfer(self, job: str, size: int) -> Iterator[None]:
        """Count an artifact of `size` bytes as on its way during the block."""
        with self._lock:
            if not self.jobs:
                self.done, self.total, self.since = 0, 0, time.monotonic()
            self.jobs.append(job)
            self.total += size
        try:
            yield
        finally:
            with self._lock:
                self.jobs.remove(job)

    def advance(self, size: int) -> None:
        """Count bytes of a file as there."""
        with self._lock:
            self.done += size

    def moved(self, remote: str) -> Moved:
        """Return the event about the present state."""
        with self._lock:
            return Moved(self.direction, remote, tuple(self.jobs), min(self.done, self.total), self.total)


def reporter(remote: str, moving: Sequence[Moving], on_event: Callable[[Moved], None]) -> Callable[[], None]:
    """Return a function that reports what is new: about each direction at most one event a second, and a last one."""
    last: dict[Direction, float] = {}  # when the last event about transfers came that are not over

    def report() -> None:
        for each in moving:
            moved, now = each.moved(remote), time.monotonic()
            if not moved.jobs:
                if last.pop(each.direction, None) is not None:
                    on_event(moved)
            elif now - max(each.since, last.get(each.direction, 0.0)) >= PULSE:
                last[each.direction] = now
                on_event(moved)

    return report


@dataclass
class Counts:
    """What happened at the remote. Several threads count."""

    taken: int = 0
    pushed: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    """Refused objects by the kind of the reason."""
    reasons: dict[str, str] = field(default_factory=dict)
    """The first message of each kind."""
    again: list[str] = field(default_factory=list)
    """The jobs whose results were pushed again, because what the remote had of them was lost or could not be used."""
    error: UserError | None = None
    """The first error that was not a refusal of an object: nothing more is pushed."""
    unread: UserError | None = None
    """The first error of a look-up."""
    on_bytes: Callable[[int], None] = lambda _: None
    """Called with the number of bytes of each object that came or went."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def send(self, count: int) -> None:
        """Count the bytes of an object that went to the remote."""
        with self._lock:
            self.bytes_out += count
        self.on_bytes(count)

    def receive(self, count: int) -> None:
        """Count the bytes of an object that came from the remote."""
        with self._lock:
            self.bytes_in += count
        self.on_bytes(count)

    def refuse(self, error: RefusedError) -> None:
        """Count an object that is not what its record or its signature promises."""
        with self._lock:
            self.refused[error.kind] += 1
            self.reasons.setdefault(error.kind, error.what)

    def note(self, error: UserError | OSError) -> None:
        """Keep the first error."""
        if self.error is None:
            self.error = error if isinstance(error, UserError) else StoreError(str(error))

    def trouble(self, remote: str, gone: UserError | None) -> str:
        """Return one line about what went wrong at a remote; "" if nothing did. `gone` is why it is left alone."""
        error = gone or self.error or self.unread
        if error is not None:
            state = "is left alone" if gone or self.error else "cannot be read, and jobs run here"
            what = error.what.removeprefix(f"{remote}/")
            return f"the remote {remote} {state}: {'; '.join(filter(None, [what, *error.facts, error.hint]))}"
        if self.refused:
            kinds = ", ".join(f"{count} {kind}" for kind, count in self.refused.most_common())
            first = next(iter(self.reasons.values()))
            return f"the remote {remote}: {self.refused.total()} refused ({kinds}): {first}"
        return ""

    @property
    def repairs(self) -> str:
        """What was pushed again, as the end of a line; "" if nothing was."""
        names = lists.counts(Counter(self.again))
        return f"; pushed again, because it was missing there or could not be used: {names}" if names else ""

    def transfers(self, remote: str) -> str:
        """Return one line about what came and went; "" if nothing did."""
        parts = []
        if self.taken:
            parts.append(f"{self.taken} records came from there, {sizes.decimal(self.bytes_in)} of files")
        if self.pushed:
            parts.append(f"{self.pushed} records went there, {sizes.decimal(self.bytes_out)} of files")
        return f"the remote {remote}: {'; '.join(parts)}" if parts else ""
