"""The one loop: find the artifact or make it; yields Events."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine import feasibility, machine
from engine.attempt import Attempt
from engine.digest import Digest
from engine.errors import Exit, UserError
from engine.events import BuildState, Ended, Event, Finished, JobState, Planned, Started
from engine.executors.local import LocalExecutor
from engine.jobs import Job
from engine.key import Key, digest_of
from engine.lookup import Lookup, Variant, head_of, job_note, keep_head
from engine.materialise import materialise
from engine.store import Lock, Record
from engine.worker import Outcome

_LOCKED_POLL_SECONDS = 0.05
_PASSED: tuple[JobState, ...] = ("cached", "built")


@dataclass(frozen=True)
class Options:
    """How to build, where that is no part of any key."""

    out: Path
    force: frozenset[str] = frozenset()
    keep_going: bool = False
    allow_waiting: bool = False


@dataclass
class _Ticket:
    """One job of one variant on its way through the build."""

    variant: Variant
    job: Job
    open_needs: int
    key: Key | None = None
    ended: Ended | None = None
    record: Record | None = None
    dependents: list[_Ticket] = field(default_factory=list)

    @property
    def known_key(self) -> Key:
        if self.key is None:
            raise AssertionError("a job's key is asked for before its inputs are known")
        return self.key

    @property
    def digest(self) -> Digest:
        return digest_of(self.known_key)


@dataclass(frozen=True)
class _Running:
    ticket: _Ticket
    attempt: Attempt


def run(variants: Sequence[Variant], lookup: Lookup, executor: LocalExecutor, options: Options) -> Iterator[Event]:
    """Build all variants, sharing every job that they have in common; the last event says how it went.

    Closes the executor. On an interrupt all workers are ended and nothing half-made is left.
    """
    build = _Build(variants, lookup, executor, options)
    try:
        yield from build.events()
    except KeyboardInterrupt:
        build.abandon()
        yield build.finished(interrupted=True)
    finally:
        build.abandon()


class _Build:
    def __init__(self, variants: Sequence[Variant], lookup: Lookup, executor: LocalExecutor, options: Options) -> None:
        self.variants = variants
        self.lookup = lookup
        self.store = lookup.store
        self.executor = executor
        self.options = options
        self.started = time.monotonic()
        self.exits: list[Exit] = []
        self.packages: dict[str, Path] = {}
        self.heads = {variant.name: head_of(self.store, variant) for variant in variants}
        self.notes: dict[str, dict[str, Any]] = {variant.name: {} for variant in variants}
        self.forced: set[Digest] = set()
        self.tickets = _tickets(variants)
        self.ready = deque(ticket for ticket in self.tickets.values() if ticket.open_needs == 0)
        self.runnable: deque[_Ticket] = deque()
        self.running: dict[Digest, _Running] = {}

    def events(self) -> Iterator[Event]:
        for variant in self.variants:
            yield Planned(variant.name, tuple((job.name, job.earlier) for job in variant.jobs))
        while self.ready or self.runnable or self.running:
            while self.ready:
                yield from self._look_up(self.ready.popleft())
            yield from self._fill_slots()
            if self.ready:
                continue
            if self.running:
                for ident, outcome in self.executor.poll():
                    if isinstance(ident, str):
                        yield from self._take(self.running.pop(Digest(ident)), outcome)
            elif self.runnable:
                time.sleep(_LOCKED_POLL_SECONDS)
        yield self.finished()

    def finished(self, *, interrupted: bool = False) -> Finished:
        """Keep what was learned and sum up."""
        for variant in self.variants:
            keep_head(self.store, variant, self.notes[variant.name])
        self.lookup.save()
        code = Exit.INTERRUPTED if interrupted else Exit.worst(self.exits)
        states = {ticket.ended.state for ticket in self.tickets.values() if ticket.ended is not None}
        state: BuildState = "built" if "built" in states else "up to date"
        if code in (Exit.USAGE, Exit.FAILED, Exit.JUDGED):
            state = "failed"
        elif interrupted:
            state = "interrupted"
        elif "waiting" in states:
            state = "waiting"
        return Finished(state, round(time.monotonic() - self.started, 3), code, dict(self.packages))

    def abandon(self) -> None:
        """End all workers and remove what they were making."""
        self.executor.close()
        for running in self.running.values():
            running.attempt.close()
        self.running.clear()

    def _look_up(self, ticket: _Ticket) -> Iterator[Event]:
        """Settle a job whose inputs are known, or queue it for a worker."""
        needed = [self.tickets[ticket.variant.name, name] for name in ticket.job.earlier]
        if any(other.ended is None or other.ended.state not in _PASSED for other in needed):
            yield from self._end(ticket, "skipped")
            return
        inputs = {name: str(record.artifact) for name, record in self._inputs(ticket).items()}
        try:
            ticket.key = self.lookup.key(ticket.job, inputs)
        except UserError as error:
            yield from self._end(ticket, "failed", error=error)
            return
        self.runnable.append(ticket)

    def _fill_slots(self) -> Iterator[Event]:
        """Settle or start each queued job; those that cannot go yet stay queued."""
        for _ in range(len(self.runnable)):
            ticket = self.runnable.popleft()
            if ticket.digest in self.running:
                self.runnable.append(ticket)
                continue
            record = self._found(ticket)
            if record is not None:
                yield from self._settle(ticket, record, "cached")
            elif self._stopping():
                yield from self._end(ticket, "skipped")
            elif (waits_for := _missing_hardware(ticket.job)) is not None:
                yield from self._end(ticket, "waiting", waits_for=waits_for)
            elif self._has_slot(ticket.job):
                yield from self._start_or_queue(ticket)
            else:
                self.runnable.append(ticket)

    def _inputs(self, ticket: _Ticket) -> dict[str, Record]:
        """Return the records behind a job's inputs, by parameter."""
        makers = {name: self.tickets[ticket.variant.name, maker] for name, maker in ticket.job.needs.items()}
        return {name: maker.record for name, maker in makers.items() if maker.record is not None}

    def _found(self, ticket: _Ticket) -> Record | None:
        forced = ticket.job.name in self.options.force and ticket.digest not in self.forced
        return None if forced or ticket.key is None else self.store.find(ticket.key)

    def _start_or_queue(self, ticket: _Ticket) -> Iterator[Event]:
        """Start a job unless another builder is at it; then it is looked up again later."""
        try:
            lock = self.store.try_lock(ticket.digest)
            if lock is None:
                self.runnable.append(ticket)
                return
            # Another builder may have made it between the look-up and the lock.
            record = self._found(ticket)
            if record is None:
                yield self._start(ticket, lock)
                return
            lock.release()
        except UserError as error:
            yield from self._end(ticket, "failed", error=error)
        else:
            yield from self._settle(ticket, record, "cached")

    def _start(self, ticket: _Ticket, lock: Lock) -> Started:
        step = ticket.job.step
        attempt = Attempt.prepare(self.lookup, ticket.job, ticket.known_key, self._inputs(ticket), lock)
        self.executor.submit(str(ticket.digest), attempt.task, tools=step.tools_used(), time_limit=step.time_limit)
        self.running[ticket.digest] = _Running(ticket, attempt)
        return Started(ticket.variant.name, ticket.job.name, attempt.log)

    def _take(self, running: _Running, outcome: Outcome) -> Iterator[Event]:
        """Turn a worker's outcome into a record, or into the job's failure."""
        ticket = running.ticket
        try:
            record = running.attempt.record(outcome)
        except UserError as error:
            self._note(ticket, made=False)
            yield from self._end(ticket, "failed", seconds=outcome.seconds, error=error)
        else:
            self.forced.add(ticket.digest)
            yield from self._settle(ticket, record, "built", seconds=outcome.seconds)
        finally:
            running.attempt.close()

    def _settle(self, ticket: _Ticket, record: Record, state: JobState, *, seconds: float = 0.0) -> Iterator[Event]:
        """Judge what was found or made, and hand it on."""
        ticket.record = record
        self._note(ticket, made=True)
        try:
            ticket.job.step.judge(dict(record.report))
            if ticket.job.name == "fetch":
                feasibility.check_model(ticket.variant.loaded, record.report)
            if ticket.job.name == "package":
                place = self.options.out / ticket.variant.name
                materialise(self.store, record, place)
                self.packages[ticket.variant.name] = place
        except UserError as error:
            yield from self._end(ticket, "failed", seconds=seconds, error=error)
        else:
            yield from self._end(ticket, state, seconds=seconds)

    def _end(
        self,
        ticket: _Ticket,
        state: JobState,
        *,
        seconds: float = 0.0,
        error: UserError | None = None,
        waits_for: str | None = None,
    ) -> Iterator[Event]:
        if error is not None:
            self.exits.append(error.exit)
        if waits_for is not None and not self.options.allow_waiting:
            self.exits.append(Exit.WAITING)
        record = ticket.record
        ticket.ended = Ended(
            recipe=ticket.variant.name,
            job=ticket.job.name,
            state=state,
            seconds=round(seconds, 3),
            key=str(ticket.digest) if ticket.key is not None else None,
            artifact=str(record.artifact) if record else None,
            path=self.store.artifact_path(record.artifact) if record else None,
            waits_for=waits_for,
            error=error,
        )
        for dependent in ticket.dependents:
            dependent.open_needs -= 1
            if dependent.open_needs == 0:
                self.ready.append(dependent)
        yield ticket.ended

    def _note(self, ticket: _Ticket, *, made: bool) -> None:
        if ticket.key is not None:
            before = self.heads[ticket.variant.name].get("jobs", {}).get(ticket.job.name, {})
            self.notes[ticket.variant.name][ticket.job.name] = job_note(ticket.job, ticket.key, before, made=made)

    def _stopping(self) -> bool:
        return not self.options.keep_going and any(code is not Exit.WAITING for code in self.exits)

    def _has_slot(self, job: Job) -> bool:
        if job.step.exclusive:
            return self.executor.busy == 0
        alone = any(running.ticket.job.step.exclusive for running in self.running.values())
        return not alone and self.executor.busy < self.executor.slots


def _tickets(variants: Iterable[Variant]) -> Mapping[tuple[str, str], _Ticket]:
    tickets = {
        (variant.name, job.name): _Ticket(variant, job, len(job.earlier))
        for variant in variants
        for job in variant.jobs
    }
    for ticket in tickets.values():
        for name in ticket.job.earlier:
            tickets[ticket.variant.name, name].dependents.append(ticket)
    return tickets


def _missing_hardware(job: Job) -> str | None:
    hardware = job.step.hardware()
    if hardware is None or machine.can_run(hardware.gpu, hardware.tool):
        return None
    return str(hardware)
