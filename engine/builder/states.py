"""The table of states: an entry for each job of a build, and the one place that moves a job from state to state."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from engine.builder.job import Job
from engine.builder.variant import PlannedVariant
from engine.digest import Digest
from engine.events import Ended, JobState
from engine.key import Key, digest_of
from engine.store.heads import Head, JobNote
from engine.store.record import Record

if TYPE_CHECKING:
    from engine.builder.executors.executor import Demand, Run
    from engine.step import Hardware

PASSED: tuple[JobState, ...] = ("cached", "built", "reproduced")
"""The ends after which the jobs that need a job can start."""
UNKNOWN_SECONDS = 1.0
"""The expected duration in seconds of a job for which the store has no measured duration."""
Name = TypeVar("Name", bound=Hashable)


class State(Enum):
    """The state of a job in a build."""

    BLOCKED = auto()
    """The job waits, because another job that it needs has not ended yet."""
    READY = auto()
    """All jobs that this job needs have ended, and this job is looked up in the store next."""
    STARTABLE = auto()
    """The store has no record of the job, so the job starts as soon as a worker is free."""
    STARTABLE_ALONE = auto()
    """The store has no record of the job, which measures time: the job starts when its machine runs no other job."""
    LOCKED_ELSEWHERE = auto()
    """Another builder runs the job; this builder soon looks in the store again for the job's record."""
    AWAITED = auto()
    """The job needs hardware that this machine lacks; this builder looks again for the record of another machine."""
    RUNNING = auto()
    """A worker of this builder is running the job."""
    FOLLOWING = auto()
    """Another ticket with the same key runs, or waits for its lock; after its end this job is looked up again."""
    ENDED = auto()
    """The job has ended: `Ticket.ended` says whether it is cached, built, skipped, failed or waiting for hardware."""


_AFTER_STARTABLE = frozenset(
    {State.READY, State.BLOCKED, State.RUNNING, State.FOLLOWING, State.LOCKED_ELSEWHERE, State.ENDED}
)
_NEXT: Mapping[State, frozenset[State]] = {
    State.BLOCKED: frozenset({State.READY}),
    State.READY: frozenset(
        {State.STARTABLE, State.STARTABLE_ALONE, State.BLOCKED, State.AWAITED, State.FOLLOWING, State.ENDED}
    ),
    State.STARTABLE: _AFTER_STARTABLE,
    State.STARTABLE_ALONE: _AFTER_STARTABLE,
    State.LOCKED_ELSEWHERE: frozenset({State.READY}),
    State.AWAITED: frozenset({State.READY, State.ENDED}),
    State.RUNNING: frozenset({State.READY, State.ENDED}),
    State.FOLLOWING: frozenset({State.READY, State.ENDED}),
    State.ENDED: frozenset({State.READY}),
}
_QUEUED = (State.READY, State.STARTABLE, State.STARTABLE_ALONE, State.LOCKED_ELSEWHERE)
"""The states in which a ticket waits in a queue until the build loop takes it. Other states end by an event."""


@dataclass(eq=False)
class Ticket:
    """The entry of one job of one variant: all that a build remembers of the job."""

    variant: PlannedVariant
    job: Job
    note: JobNote | None
    """What the builds before this one noted of the job."""
    siblings: Mapping[str, Ticket]
    """The tickets of the variant, by the name of the job."""
    urgency: float = 0.0
    state: State = State.BLOCKED
    open_needs: int = 0
    dependents: list[Ticket] = field(default_factory=list)
    key: Key | None = None
    lane: Demand | None = None
    """What the job takes of a machine; tickets of one lane wait in one queue."""
    record: Record | None = None
    ended: Ended | None = None
    run: Run | None = None
    stored: Record | None = None
    """The record whose artifact is compared with the output, if the job is only made again."""
    has_run: bool = False
    """Whether a worker of this builder has come to the end of the job, in success or in failure."""
    reruns: int = 0
    """How often the job ran again, because the store was damaged under it or its machine was lost."""
    followers: list[Ticket] = field(default_factory=list)
    elsewhere_since: float | None = None
    """Since when the job waits for the builder that has locked its key."""
    holder: str = ""
    """The builder on another machine that has the right to run the job; "" if none has it."""
    is_announced: bool = False
    """Whether the user knows that the job waits for another builder."""
    waits_for: Hardware | None = None
    """The hardware that the job needs and this machine lacks, if that is why the job waits or has waited."""
    awaited_since: float | None = None
    """Since when the job waits for the result of another machine; None if the build waits for none."""

    @property
    def earlier(self) -> list[Ticket]:
        """The tickets of the jobs that must pass before this job."""
        return [self.siblings[name] for name in self.job.earlier]

    @property
    def before(self) -> list[Ticket]:
        """The tickets of all jobs before this job, not only of those whose outputs the job reads."""
        return [self.siblings[name] for name in self.variant.before(self.job)]

    @property
    def makers(self) -> dict[str, Ticket]:
        """For each input of the job, the ticket of the job that makes it."""
        return {parameter: self.siblings[name] for parameter, name in self.job.needs.items()}

    @property
    def known_key(self) -> Key:
        """The job's key; an error until the job's inputs are known."""
        if self.key is None:
            raise AssertionError("a job's key is asked for before its inputs are known")
        return self.key

    @cached_property
    def digest(self) -> Digest:
        """The digest of the key."""
        return digest_of(self.known_key)

    @property
    def inputs(self) -> dict[str, Record]:
        """The records of the job's inputs, by parameter."""
        return {name: maker.record for name, maker in self.makers.items() if maker.record is not None}


class States:
    """The tickets of a build, in the order of the plans. Of several tickets in a queue, the most urgent is taken first.

    Tickets of several variants with the same key are one piece of work: the first that can start leads, the others
    follow.
    """

    def __init__(self, variants: Iterable[PlannedVariant], heads: Mapping[str, Head]) -> None:
        """`heads` are what the last builds noted, by the name of the variant: the expected time and memory of jobs."""
        self.tickets: Sequence[Ticket] = [ticket for each in variants for ticket in _issue(each, heads.get(each.name))]
        self.has_failed = False
        """Whether a job has failed."""
        self._count = dict.fromkeys(State, 0) | {State.BLOCKED: len(self.tickets)}
        self._queues: dict[State, dict[Any, list[tuple[float, int, Ticket]]]] = {state: {} for state in _QUEUED}
        """The heaps of tickets in each queue, by the lane."""
        self._arrivals = itertools.count()
        self._leaders: dict[Digest, Ticket] = {}
        times = {each: each.note.seconds for each in self.tickets if each.note and each.note.seconds is not None}
        urgent = urgencies([(ticket, ticket.earlier) for ticket in self.tickets], times)
        for ticket in self.tickets:
            ticket.urgency = urgent[ticket]
            self._unblock(ticket)

    def has(self, *states: State) -> bool:
        """Say whether any ticket is in one of the states `states`."""
        return any(self._count[state] for state in states)

    def of(self, state: State) -> list[Ticket]:
        """Return the tickets in a state."""
        return [ticket for ticket in self.tickets if ticket.state is state]

    def take(self, state: State, has_room: Callable[[Any], bool] = lambda _: True) -> Ticket | None:
        """Remove and return the most urgent ticket in the queue of a state whose lane has room; None without one.

        Of equally urgent tickets, the one that came first is taken.
        """
        lanes = self._queues[state]
        for lane in sorted(lanes, key=lambda lane: lanes[lane][0][:2]):
            if has_room(lane):
                _, _, ticket = heapq.heappop(lanes[lane])
                if not lanes[lane]:
                    del lanes[lane]
                return ticket
        return None

    def take_all(self, *states: State) -> list[Ticket]:
        """Remove all tickets from the queues of states and return them."""
        return [ticket for state in states for _ in range(self._count[state]) if (ticket := self.take(state))]

    def move(self, ticket: Ticket, state: State) -> None:
        """Move a ticket to a state. Raises AssertionError for a state that cannot follow the present state."""
        if state not in _NEXT[ticket.state]:
            raise AssertionError(f"{ticket.job.name} of {ticket.variant.name} cannot go from {ticket.state} to {state}")
        self._count[ticket.state] -= 1
        self._count[state] += 1
        ticket.state = state
        if state in self._queues:
            heap = self._queues[state].setdefault(ticket.lane, [])
            heapq.heappush(heap, (-ticket.urgency, next(self._arrivals), ticket))

    def end(self, ticket: Ticket, ended: Ended, record: Record | None = None) -> None:
        """End a ticket. A ticket becomes ready when the last job that it waits for has ended, or the one it follows."""
        ticket.ended, ticket.record = ended, record
        self.has_failed = self.has_failed or ended.error is not None
        self.move(ticket, State.ENDED)
        for dependent in ticket.dependents:
            dependent.open_needs -= 1
            self._unblock(dependent)
        self._release(ticket)

    def reopen(self, maker: Ticket) -> None:
        """Let an ended job run, because its artifact cannot be had. `block` lets the jobs wait that need it."""
        if maker.state is State.ENDED:
            maker.ended, maker.record, maker.dependents = None, None, []
            self.move(maker, State.READY)

    def block(self, ticket: Ticket) -> bool:
        """Let a ticket wait if a job that must pass before it was opened again; return whether it waits."""
        opened = [each for each in ticket.earlier if each.state is not State.ENDED]
        for each in opened:
            each.dependents.append(ticket)
        if opened:
            ticket.open_needs += len(opened)
            self.rekey(ticket, None)
            self.move(ticket, State.BLOCKED)
        return bool(opened)

    def rekey(self, ticket: Ticket, key: Key | None) -> None:
        """Give a ticket a key, or none: then the key is computed again. Another key ends the following."""
        if key != ticket.key:
            ticket.key = key
            ticket.__dict__.pop("digest", None)
            self._release(ticket)

    def leader(self, digest: Digest) -> Ticket | None:
        """Return the last ticket that started the job of a key in this build, or tried to start it."""
        leader = self._leaders.get(digest)
        return leader if leader is not None and leader.key is not None and leader.digest == digest else None

    def ran(self, digest: Digest) -> Ticket | None:
        """Return the ticket whose job has run in this build for a key; None if none has."""
        leader = self.leader(digest)
        return leader if leader is not None and leader.has_run else None

    def lead(self, ticket: Ticket) -> None:
        """Let a ticket lead all tickets with its key."""
        self._leaders[ticket.digest] = ticket

    def follow(self, ticket: Ticket) -> bool:
        """Let a ticket follow the one that leads its key; return False if there is none that has not ended."""
        leader = self.leader(ticket.digest)
        if leader is None or leader is ticket or leader.state is State.ENDED:
            return False
        leader.followers.append(ticket)
        self.move(ticket, State.FOLLOWING)
        return True

    def _release(self, leader: Ticket) -> None:
        followers, leader.followers = leader.followers, []
        for follower in followers:
            if follower.state is State.FOLLOWING:
                self.move(follower, State.READY)

    def _unblock(self, ticket: Ticket) -> None:
        if ticket.open_needs == 0:
            self.move(ticket, State.READY)


def _issue(variant: PlannedVariant, head: Head | None) -> Iterable[Ticket]:
    """Return the tickets of a variant's jobs."""
    tickets: dict[str, Ticket] = {}
    for job in variant.jobs:
        ticket = tickets[job.name] = Ticket(variant, job, None if head is None else head.jobs.get(job.name), tickets)
        for each in ticket.earlier:
            each.dependents.append(ticket)
            ticket.open_needs += 1
    return tickets.values()


def urgencies(jobs: Sequence[tuple[Name, Iterable[Name]]], seconds: Mapping[Name, float]) -> dict[Name, float]:
    """Return for each job the seconds from its start to the end of the longest chain of jobs that need it.

    `jobs` are pairs of a job and the jobs that it needs; a job comes after the jobs that it needs.
    """
    behind: dict[Name, float] = {}
    for name, needs in reversed(jobs):
        behind[name] = behind.get(name, 0.0) + seconds.get(name, UNKNOWN_SECONDS)
        for needed in needs:
            behind[needed] = max(behind.get(needed, 0.0), behind[name])
    return behind
