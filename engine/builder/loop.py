"""The one loop: find the artifact or make it; yields Events."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine import feasibility
from engine.builder import reports
from engine.builder.attempt import Attempt
from engine.builder.executors.local import LocalExecutor
from engine.builder.lookup import Lookup, Variant, content_of
from engine.builder.schedule import Queue
from engine.builder.tickets import Ticket, issue
from engine.builder.worker import Outcome
from engine.digest import Digest
from engine.errors import Exit, UserError
from engine.events import BuildState, Ended, Event, Finished, JobState, Noticed, Planned, Started
from engine.feasibility.facts import ModelFacts
from engine.store.heads import job_note
from engine.store.locks import Lock
from engine.store.materialise import materialise
from engine.store.store import Record

_LOCKED_POLL_SECONDS = 0.05
_NO_LOCKS = (
    "the file system of {} has no working locks: builders that share this store may repeat each other's work "
    "(each result is whole all the same), and nothing can be collected from it"
)
_PASSED: tuple[JobState, ...] = ("cached", "built")


@dataclass(frozen=True)
class Options:
    """How to build, where that is no part of any key."""

    out: Path
    force: frozenset[str] = frozenset()
    keep_going: bool = False
    allow_waiting: bool = False


@dataclass(frozen=True)
class _Running:
    ticket: Ticket
    attempt: Attempt
    followers: list[Ticket] = field(default_factory=list)
    """The same job in other variants: it is looked up again when this one has ended."""


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
        lookup.store.leave()


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
        self.heads = {variant.name: lookup.heads.of(variant.loaded) for variant in variants}
        self.notes: dict[str, dict[str, Any]] = {variant.name: {} for variant in variants}
        self.forced: set[Digest] = set()
        self.tickets = issue(variants, self.heads)
        self.known: Queue[Ticket] = Queue()
        """Its inputs are there: to be looked up."""
        self.startable: Queue[Ticket] = Queue()
        """Not in the store: to be made."""
        self.exclusive: Queue[Ticket] = Queue()
        """The same, with nothing beside it."""
        self.running: dict[Digest, _Running] = {}
        self.locked: list[Ticket] = []
        """Another builder is making it."""
        self.tried_locked = 0.0

    def events(self) -> Iterator[Event]:
        if not self.store.locks_work:
            yield Noticed(_NO_LOCKS.format(self.store.root))
        for variant in self.variants:
            yield Planned(variant.name, tuple((job.name, job.earlier) for job in variant.jobs))
        for ticket in self.tickets.values():
            if ticket.open_needs == 0:
                self.known.add(ticket, ticket.urgency)
        while self.known or self.startable or self.exclusive or self.running or self.locked:
            yield from self._fill_slots()
            if self.known:
                yield from self._look_up(self.known.take())
            elif self.locked and not self.running:
                time.sleep(_LOCKED_POLL_SECONDS)
            yield from self._collect(0.0 if self.known else _LOCKED_POLL_SECONDS if self.locked else None)
            self._retry_locked()
        yield self.finished()

    def _collect(self, timeout: float | None) -> Iterator[Event]:
        """Take what workers have done."""
        if self.running:
            for ident, outcome in self.executor.poll() if timeout is None else self.executor.poll(timeout):
                if isinstance(ident, str):
                    yield from self._take(self.running.pop(Digest(ident)), outcome)

    def _retry_locked(self) -> None:
        if self.locked and time.monotonic() - self.tried_locked > _LOCKED_POLL_SECONDS:
            self.tried_locked = time.monotonic()
            for ticket in self.locked:
                self.known.add(ticket, ticket.urgency)
            self.locked.clear()

    def finished(self, *, interrupted: bool = False) -> Finished:
        """Keep what was learned and sum up."""
        for variant in self.variants:
            self.lookup.heads.keep(variant.loaded, self.notes[variant.name])
        self.lookup.heads.save()
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

    def _look_up(self, ticket: Ticket) -> Iterator[Event]:
        """Settle a job whose inputs are known, or queue it for a worker."""
        needed = [self.tickets[ticket.variant.name, name] for name in ticket.job.earlier]
        if any(other.ended is None or other.ended.state not in _PASSED for other in needed):
            yield from self._end(ticket, "skipped")
            return
        if ticket.key is None:
            inputs = {
                name: content_of(self._maker(ticket, name).job, each) for name, each in self._inputs(ticket).items()
            }
            try:
                ticket.key = self.lookup.key(ticket.job, inputs)
            except UserError as error:
                yield from self._end(ticket, "failed", error=error)
                return
        if ticket.digest in self.running:
            self.running[ticket.digest].followers.append(ticket)
        elif (record := self._found(ticket)) is not None:
            yield from self._settle(ticket, record, "cached")
        elif (away := self.lookup.away(ticket.job)) is not None and not self._stopping():
            yield from self._end(ticket, "waiting", waits_for=str(away))
        else:
            queue = self.exclusive if ticket.job.step.exclusive else self.startable
            queue.add(ticket, ticket.urgency)

    def _fill_slots(self) -> Iterator[Event]:
        """Start what can be started; what must run alone comes when there is nothing else to do."""
        alone = any(running.ticket.job.step.exclusive for running in self.running.values())
        while self.startable and not alone and self.executor.busy < self.executor.slots:
            yield from self._start_unless_made(self.startable.take())
        if self.exclusive and not (self.startable or self.known or self.running):
            yield from self._start_unless_made(self.exclusive.take())

    def _inputs(self, ticket: Ticket) -> dict[str, Record]:
        """Return the records behind a job's inputs, by parameter."""
        records = {name: self._maker(ticket, name).record for name in ticket.job.needs}
        return {name: record for name, record in records.items() if record is not None}

    def _maker(self, ticket: Ticket, name: str) -> Ticket:
        """Return the job that fills an input."""
        return self.tickets[ticket.variant.name, ticket.job.needs[name]]

    def _found(self, ticket: Ticket) -> Record | None:
        if ticket.job.name in self.options.force and ticket.digest not in self.forced:
            return None
        self.store.use(ticket.digest)
        record = self.lookup.find(ticket.job, ticket.known_key)
        if record is not None and record.digest != ticket.digest:  # made on another machine
            ticket.rekey(record.key)
            self.store.use(ticket.digest)
        return record

    def _start_unless_made(self, ticket: Ticket) -> Iterator[Event]:
        """Start a job, unless it is being made or was made since it was looked up."""
        if self._stopping():
            yield from self._end(ticket, "skipped")
            return
        if ticket.digest in self.running:
            self.running[ticket.digest].followers.append(ticket)
            return
        try:
            lock = self.store.try_lock(ticket.digest)
            if lock is None:
                self.locked.append(ticket)
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

    def _start(self, ticket: Ticket, lock: Lock) -> Started:
        step = ticket.job.step
        attempt = Attempt.prepare(self.lookup, ticket.job, ticket.known_key, self._inputs(ticket), lock)
        self.executor.submit(
            str(ticket.digest),
            attempt.task,
            tools=step.tools_used(),
            variables=step.variables,
            time_limit=step.time_limit,
        )
        self.running[ticket.digest] = _Running(ticket, attempt)
        return Started(ticket.variant.name, ticket.job.name, attempt.log)

    def _take(self, running: _Running, outcome: Outcome) -> Iterator[Event]:
        """Turn a worker's outcome into a record, or into the job's failure."""
        ticket = running.ticket
        try:
            record = running.attempt.record(outcome)
        except UserError as error:
            for each in (ticket, *running.followers):
                self._note(each, made=False)
                yield from self._end(each, "failed", seconds=outcome.seconds, error=error)
        else:
            self.forced.add(ticket.digest)
            yield from self._settle(ticket, record, "built", seconds=outcome.seconds)
            for follower in running.followers:
                self.known.add(follower, follower.urgency)
        finally:
            running.attempt.close()

    def _settle(self, ticket: Ticket, record: Record, state: JobState, *, seconds: float = 0.0) -> Iterator[Event]:
        """Judge what was found or made, and hand it on."""
        ticket.record = record
        self._note(ticket, made=True)
        try:
            self.lookup.accept(ticket.job, record)
            report = reports.read(type(ticket.job.step), record)
            ticket.job.step.judge(report)
            if isinstance(report, ModelFacts):
                feasibility.check_model(ticket.variant.loaded, report)
            if ticket.job.step.delivers:
                place = self.options.out / ticket.variant.name
                materialise(self.store, record, place)
                self.packages[ticket.variant.name] = place
        except UserError as error:
            yield from self._end(ticket, "failed", seconds=seconds, error=error)
        else:
            yield from self._end(ticket, state, seconds=seconds)

    def _end(
        self,
        ticket: Ticket,
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
                self.known.add(dependent, dependent.urgency)
        yield ticket.ended

    def _note(self, ticket: Ticket, *, made: bool) -> None:
        if ticket.key is not None:
            before = self.heads[ticket.variant.name].get("jobs", {}).get(ticket.job.name, {})
            self.notes[ticket.variant.name][ticket.job.name] = job_note(
                ticket.job, ticket.digest, before, ticket.record if made else None
            )

    def _stopping(self) -> bool:
        return not self.options.keep_going and any(code is not Exit.WAITING for code in self.exits)
