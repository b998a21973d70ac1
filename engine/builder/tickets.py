"""Tickets: the jobs of a build with their states."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import cached_property

from engine.builder.job import Job
from engine.builder.schedule import urgencies
from engine.builder.variant import PlannedVariant
from engine.digest import Digest
from engine.events import Ended
from engine.key import Key, digest_of
from engine.store.heads import Head
from engine.store.record import Record


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
    """A worker of this builder runs the same job for another variant; after that run this job is looked up again."""
    ENDED = auto()
    """The job has ended: `Ticket.ended` says whether it is cached, built, skipped, failed or waiting for hardware."""


_AFTER_STARTABLE = frozenset(
    {State.READY, State.BLOCKED, State.RUNNING, State.FOLLOWING, State.LOCKED_ELSEWHERE, State.ENDED}
)
_NEXT: Mapping[State, frozenset[State]] = {
    State.BLOCKED: frozenset({State.READY}),
    State.READY: frozenset({State.STARTABLE, State.STARTABLE_ALONE, State.AWAITED, State.FOLLOWING, State.ENDED}),
    State.STARTABLE: _AFTER_STARTABLE,
    State.STARTABLE_ALONE: _AFTER_STARTABLE,
    State.LOCKED_ELSEWHERE: frozenset({State.READY}),
    State.AWAITED: frozenset({State.READY, State.ENDED}),
    State.RUNNING: frozenset({State.READY, State.ENDED}),
    State.FOLLOWING: frozenset({State.READY, State.ENDED}),
    State.ENDED: frozenset({State.READY}),
}


@dataclass(eq=False)
class Ticket:
    """One job of one variant, with its state in the build."""

    variant: PlannedVariant
    job: Job
    open_needs: int
    urgency: float
    memory: int | None = None
    """The bytes of memory that the job took in an earlier build; None if that is not known."""
    state: State = State.BLOCKED
    lane: Hashable = None
    """What the job needs of a machine, as its executor names it; tickets of one lane wait in one queue."""
    key: Key | None = None
    ended: Ended | None = None
    record: Record | None = None
    dependents: list[Ticket] = field(default_factory=list)

    def move(self, state: State) -> None:
        """Move the ticket to a state. Raises AssertionError for a state that cannot follow the present state."""
        if state not in _NEXT[self.state]:
            raise AssertionError(f"{self.job.name} of {self.variant.name} cannot go from {self.state} to {state}")
        self.state = state

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

    def rekey(self, key: Key | None) -> None:
        """Give this ticket the key for another machine, or none: then the key is computed again."""
        self.key = key
        self.__dict__.pop("digest", None)


def issue(variants: Iterable[PlannedVariant], heads: Mapping[str, Head]) -> Mapping[tuple[str, str], Ticket]:
    """Return a mapping from the names of variant and job to the ticket of the job.

    The urgency and the expected memory of a ticket come from earlier builds.
    """
    jobs = [(variant, job) for variant in variants for job in variant.jobs]
    needs = [((variant.name, job.name), [(variant.name, name) for name in job.earlier]) for variant, job in jobs]
    notes = {(name, job): note for name, head in heads.items() for job, note in head.jobs.items()}
    urgent = urgencies(needs, {name: note.seconds for name, note in notes.items() if note.seconds is not None})
    took = {name: note.memory for name, note in notes.items()}
    tickets = {
        name: Ticket(variant, job, len(job.earlier), urgent[name], took.get(name))
        for (name, _), (variant, job) in zip(needs, jobs, strict=True)
    }
    for name, earlier in needs:
        for other in earlier:
            tickets[other].dependents.append(tickets[name])
    return tickets
