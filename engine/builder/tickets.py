"""The jobs of a build on their way through it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import cached_property

from engine.builder.jobs import Job
from engine.builder.lookup import PlannedVariant
from engine.builder.schedule import urgencies
from engine.digest import Digest
from engine.events import Ended
from engine.key import Key, digest_of
from engine.store.heads import Head
from engine.store.store import Record


class State(Enum):
    """How far a job has come."""

    BLOCKED = auto()
    """A job that it needs has not ended yet."""
    READY = auto()
    """All that it needs has ended: it is looked up next."""
    STARTABLE = auto()
    """The store does not have it: it starts as soon as a worker is free."""
    STARTABLE_ALONE = auto()
    """The store does not have it, and it measures time: it starts when nothing else is to be done."""
    LOCKED_ELSEWHERE = auto()
    """Another builder is making it: it is looked up again shortly."""
    RUNNING = auto()
    """A worker of ours is making it."""
    FOLLOWING = auto()
    """A worker of ours is making the same for another variant: it is looked up again when that has ended."""
    ENDED = auto()
    """It was found, made, skipped, failed, or waits for hardware: `Ticket.ended` says which."""


_NEXT: Mapping[State, frozenset[State]] = {
    State.BLOCKED: frozenset({State.READY}),
    State.READY: frozenset({State.STARTABLE, State.STARTABLE_ALONE, State.FOLLOWING, State.ENDED}),
    State.STARTABLE: frozenset({State.RUNNING, State.FOLLOWING, State.LOCKED_ELSEWHERE, State.ENDED}),
    State.STARTABLE_ALONE: frozenset({State.RUNNING, State.FOLLOWING, State.LOCKED_ELSEWHERE, State.ENDED}),
    State.LOCKED_ELSEWHERE: frozenset({State.READY}),
    State.RUNNING: frozenset({State.ENDED}),
    State.FOLLOWING: frozenset({State.READY, State.ENDED}),
    State.ENDED: frozenset(),
}


@dataclass(eq=False)
class Ticket:
    """One job of one variant on its way through the build."""

    variant: PlannedVariant
    job: Job
    open_needs: int
    urgency: float
    state: State = State.BLOCKED
    key: Key | None = None
    ended: Ended | None = None
    record: Record | None = None
    dependents: list[Ticket] = field(default_factory=list)

    def move(self, state: State) -> None:
        """Go on to a state that can follow; any other is a mistake of ours."""
        if state not in _NEXT[self.state]:
            raise AssertionError(f"{self.job.name} of {self.variant.name} cannot go from {self.state} to {state}")
        self.state = state

    @property
    def known_key(self) -> Key:
        """The job's key, once its inputs are known."""
        if self.key is None:
            raise AssertionError("a job's key is asked for before its inputs are known")
        return self.key

    @cached_property
    def digest(self) -> Digest:
        """The digest of that key."""
        return digest_of(self.known_key)

    def rekey(self, key: Key) -> None:
        """Go by the key of another machine, which made what is wanted here."""
        self.key = key
        self.__dict__.pop("digest", None)


def issue(variants: Iterable[PlannedVariant], heads: Mapping[str, Head]) -> Mapping[tuple[str, str], Ticket]:
    """Return a ticket for each job by variant and job, joined, each as urgent as its last durations make it."""
    jobs = [(variant, job) for variant in variants for job in variant.jobs]
    needs = [((variant.name, job.name), [(variant.name, name) for name in job.earlier]) for variant, job in jobs]
    lasted = {
        (name, job): note.seconds
        for name, head in heads.items()
        for job, note in head.jobs.items()
        if note.seconds is not None
    }
    urgent = urgencies(needs, lasted)
    tickets = {
        (variant.name, job.name): Ticket(variant, job, len(job.earlier), urgent[variant.name, job.name])
        for variant, job in jobs
    }
    for name, earlier in needs:
        for other in earlier:
            tickets[other].dependents.append(tickets[name])
    return tickets
