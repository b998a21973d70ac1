"""The tickets of a build by state, and the order in which the build loop takes tickets of one state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping

from engine.builder.schedule import Lanes
from engine.builder.tickets import State, Ticket, issue
from engine.builder.variant import PlannedVariant
from engine.events import Ended
from engine.store.heads import Head
from engine.store.record import Record

_WAITED_IN = (State.READY, State.STARTABLE, State.STARTABLE_ALONE, State.LOCKED_ELSEWHERE)
"""The states in which a ticket waits in a queue until the build loop takes the ticket.

A ticket in a state that `_WAITED_IN` lacks is in no queue; only an event, for example the end of a job, can change its
state.
"""


class Board:
    """A board moves the tickets of a build from state to state.

    Of several tickets in a queue, the most urgent ticket is taken first.
    """

    def __init__(self, variants: Iterable[PlannedVariant], heads: Mapping[str, Head]) -> None:
        self._tickets = issue(variants, heads)
        self._count = Counter(ticket.state for ticket in self._tickets.values())
        self._waiting: dict[State, Lanes[Ticket]] = {state: Lanes() for state in _WAITED_IN}
        for ticket in self._tickets.values():
            self._unblock(ticket)

    @property
    def tickets(self) -> Iterable[Ticket]:
        """All tickets, in the order of the plans."""
        return self._tickets.values()

    def has(self, *states: State) -> bool:
        """Say whether any ticket is in one of the states `states`."""
        return any(self._count[state] for state in states)

    def take(self, state: State) -> Ticket:
        """Remove and return the most urgent ticket in the queue of a state. Raises IndexError for an empty queue."""
        ticket = self._waiting[state].take()
        if ticket is None:
            raise IndexError(f"no ticket is {state}")
        return ticket

    def take_fitting(self, state: State, has_room: Callable[[Hashable], bool]) -> Ticket | None:
        """Remove and return the most urgent ticket in the queues of a state whose lane has room; None without one."""
        return self._waiting[state].take(has_room)

    def take_all(self, state: State) -> list[Ticket]:
        """Remove all tickets from the queue of a state and return them."""
        return [self.take(state) for _ in range(self._count[state])]

    def move(self, ticket: Ticket, state: State) -> None:
        """Move a ticket to a state."""
        self._count[ticket.state] -= 1
        ticket.move(state)
        self._count[state] += 1
        if state in self._waiting:
            self._waiting[state].add(ticket, ticket.urgency, ticket.lane)

    def end(self, ticket: Ticket, ended: Ended) -> None:
        """End a ticket. A ticket becomes ready when the last job that it waits for has ended."""
        ticket.ended = ended
        self.move(ticket, State.ENDED)
        for dependent in ticket.dependents:
            dependent.open_needs -= 1
            self._unblock(dependent)

    def reopen(self, maker: Ticket, ticket: Ticket) -> None:
        """Let the ended job `maker` run, because its artifact cannot be had, and let `ticket` wait for it."""
        if maker.state is State.ENDED:
            maker.ended, maker.record, maker.dependents = None, None, []
            self.move(maker, State.READY)
        maker.dependents.append(ticket)
        ticket.open_needs += 1
        ticket.rekey(None)
        self.move(ticket, State.BLOCKED)

    def needed(self, ticket: Ticket) -> list[Ticket]:
        """Return the tickets of the jobs that must pass before this job."""
        return [self._tickets[ticket.variant.name, name] for name in ticket.job.earlier]

    def maker(self, ticket: Ticket, name: str) -> Ticket:
        """Return the ticket of the job that makes the input `name` of the given ticket's job."""
        return self._tickets[ticket.variant.name, ticket.job.needs[name]]

    def record(self, ticket: Ticket, job: str) -> Record | None:
        """Return the record of another job of the same variant, if the job has passed."""
        return self._tickets[ticket.variant.name, job].record

    def inputs(self, ticket: Ticket) -> dict[str, Record]:
        """Return the records of a job's inputs, by parameter."""
        records = {name: self.maker(ticket, name).record for name in ticket.job.needs}
        return {name: record for name, record in records.items() if record is not None}

    def _unblock(self, ticket: Ticket) -> None:
        if ticket.open_needs == 0:
            self.move(ticket, State.READY)
