"""The jobs whose results a build awaits from other machines: how long, and when it looks for them again."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.builder.tickets import State, Ticket
from engine.events import Arrival
from engine.store.record import Record

if TYPE_CHECKING:
    from engine.builder.lookup import Lookup
    from engine.step import Hardware

SHORTEST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
"""Seconds between two looks. The pause doubles from look to look, and is short again after a result has arrived."""


@dataclass(frozen=True)
class Awaited:
    """An awaited job: its ticket, the hardware that it needs, and when the build began to wait for it."""

    ticket: Ticket
    hardware: Hardware
    since: float


class Awaiting:
    """The jobs that a build awaits, and the times at which it looks for their results.

    `patience` is the number of seconds from the first job that waits to the end of all waiting; None if the build does
    not wait. A user who interrupts the build ends the waiting, too.
    """

    def __init__(self, patience: float | None) -> None:
        self._patience = patience
        self._awaited: dict[Ticket, Awaited] = {}
        self._pause = SHORTEST_PAUSE
        self._end: float | None = None
        self._next = 0.0
        self._gave_up = False

    @property
    def is_on(self) -> bool:
        """Whether the build waits for jobs that need other hardware."""
        return self._patience is not None and not self.is_over

    def add(self, ticket: Ticket, hardware: Hardware) -> bool:
        """Await a job; return False if the job was awaited before, and its result could not be used."""
        now = time.monotonic()
        if self._end is None:
            self._end = now + (self._patience or 0.0)
        if ticket in self._awaited:
            return False
        if not self._awaited:
            self._next = now + self._pause
        self._awaited[ticket] = Awaited(ticket, hardware, now)
        return True

    @property
    def still(self) -> list[tuple[Ticket, Hardware]]:
        """The awaited jobs that have not arrived, each with the hardware that it needs."""
        return [(each.ticket, each.hardware) for each in self._awaited.values() if each.ticket.state is State.AWAITED]

    @property
    def is_over(self) -> bool:
        """Whether the time is over, or the user has ended the waiting."""
        return self._end is not None and time.monotonic() >= self._end

    @property
    def left(self) -> float:
        """The seconds until the next look, or until the end of the waiting."""
        return max(0.0, min(self._next, self._end or 0.0) - time.monotonic())

    def rest(self) -> None:
        """Sleep until the next look."""
        if not self._gave_up:
            time.sleep(self.left)

    def give_up(self) -> None:
        """End the waiting at once: no result is looked for any more."""
        self._end = time.monotonic()
        self._gave_up = True

    def look(self, lookup: Lookup) -> list[Ticket]:
        """Return the tickets of the awaited jobs whose records other machines have made."""
        if self._gave_up:
            return []
        try:
            if lookup.store.tier is not None:
                lookup.store.tier.look_again()
            return [each for each, _ in self.still if lookup.find(each.job, each.known_key) is not None]
        finally:
            self._pause = min(2 * self._pause, LONGEST_PAUSE)
            self._next = time.monotonic() + self._pause

    def arrived(self, ticket: Ticket, record: Record) -> Arrival | None:
        """Return how the result of an awaited job came, and look soon for the next; None for any other job."""
        awaited = self._awaited.pop(ticket, None)
        if awaited is None:
            return None
        self._pause = SHORTEST_PAUSE
        self._next = time.monotonic() + self._pause
        machine = next((record.machine[name] for name in ("gpu.name", "cpu.model") if record.machine.get(name)), "")
        return Arrival(round(time.monotonic() - awaited.since, 3), machine)
