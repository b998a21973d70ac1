"""Awaiting: a build waits for results that other machines make, and looks for them less and less often."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from engine.builder.job_end import Ending
from engine.builder.states import State
from engine.events import Arrival, Awaits

if TYPE_CHECKING:
    from engine.builder.lookup import Lookup
    from engine.builder.options import Options
    from engine.builder.states import States, Ticket
    from engine.step import Hardware
    from engine.store.record import Record

SHORTEST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
"""Seconds between two looks for results of other machines. Each pause doubles, until the next result has arrived."""


class Awaiting:
    """The jobs of a build whose results other machines make, and when the build looks for them again."""

    def __init__(self, states: States, lookup: Lookup, options: Options) -> None:
        self._states = states
        self._lookup = lookup
        self._options = options
        self._pause = SHORTEST_PAUSE
        self._next_look = 0.0
        self._ends = math.inf

    def begin(self, ticket: Ticket, waits_for: Hardware) -> Iterator[Ending | Awaits]:
        """Await the result of a job that needs other hardware, or end the job if the build does not wait."""
        now, wait = time.monotonic(), self._options.wait
        ticket.waits_for = waits_for
        if wait is None or now >= self._ends or ticket.job.step_name in self._options.force:
            yield Ending(ticket, "waiting")
            return
        self._ends = min(self._ends, now + wait)
        if not self._states.has(State.AWAITED):
            self._next_look = now + self._pause
        self._states.move(ticket, State.AWAITED)
        if ticket.awaited_since is None:
            ticket.awaited_since = now
            yield Awaits(ticket.variant.name, ticket.job.name, str(waits_for), self._lookup.advice(waits_for))

    def look(self, *, is_over: bool) -> Iterator[Ending]:
        """Let jobs go on whose results have come; with `is_over`, or when the time has passed, end the others."""
        now = time.monotonic()
        is_over = is_over or now >= self._ends
        if not self._states.has(State.AWAITED) or not (is_over or now >= self._next_look):
            return
        if self._lookup.store.tier is not None:
            self._lookup.store.tier.look_again()
        for ticket in self._states.of(State.AWAITED):
            if self._lookup.find(ticket.job, ticket.known_key) is not None:
                self._states.move(ticket, State.READY)
            elif is_over:
                yield Ending(ticket, "waiting")
        self._pause = min(2 * self._pause, LONGEST_PAUSE)
        self._next_look = time.monotonic() + self._pause

    def give_up(self) -> Sequence[Ending]:
        """Wait no longer; return the ends of the jobs whose results have not come; none where the wait was over."""
        awaited = self._states.of(State.AWAITED) if time.monotonic() < self._ends else []
        self._ends = 0.0
        return [Ending(ticket, "waiting") for ticket in awaited]

    def arrival(self, ticket: Ticket, record: Record) -> Arrival | None:
        """Return how the result of an awaited job came, and look soon for the next; None for any other job."""
        if ticket.awaited_since is None:
            return None
        now, since, ticket.awaited_since = time.monotonic(), ticket.awaited_since, None
        self._pause, self._next_look = SHORTEST_PAUSE, now + SHORTEST_PAUSE
        machine = next((record.machine[name] for name in ("gpu.name", "cpu.model") if record.machine.get(name)), "")
        return Arrival(round(now - since, 3), machine)
