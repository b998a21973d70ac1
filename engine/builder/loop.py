"""The build loop: find each job's artifact or make it; yields Events."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from engine.builder import remake
from engine.builder.attempt import Attempt
from engine.builder.endings import Endings
from engine.builder.executors.local import LocalExecutor
from engine.builder.inputs import DamagedInputError
from engine.builder.lookup import Lookup, PlannedVariant, content_of
from engine.builder.tickets import State, Ticket
from engine.builder.worker_task import Outcome
from engine.digest import Digest
from engine.errors import UserError
from engine.events import Event, JobState, Noticed, Planned, RunsElsewhere, Started
from engine.store.file_lock import PATIENCE, FileLock
from engine.store.store import Record
from engine.system import limits

_LOCKED_POLL_SECONDS = 0.05
_NO_LOCKS = (
    "the file system of {} has no working locks: builders that share this store may repeat each other's work "
    "(each result is whole all the same), and nothing can be collected from it"
)
_CONTRADICTED = "{} has another content than an earlier build read, although its size and its times are the same"
_PASSED: tuple[JobState, ...] = ("cached", "built", "reproduced")
_STARTABLE = (State.STARTABLE, State.STARTABLE_ALONE)


@dataclass(frozen=True)
class Options:
    """Options of a build that are no rows of a key."""

    out: Path
    force: frozenset[str] = frozenset()
    remake: frozenset[str] = frozenset()
    """Steps whose stored jobs run again, to compare the bytes; `remake.ALL` stands for every reproducible step."""
    keep_going: bool = False
    allow_waiting: bool = False


@dataclass(frozen=True)
class _Running:
    ticket: Ticket
    attempt: Attempt
    stored: Record | None = None
    """The record whose artifact is compared with the output, if the job is only made again."""
    followers: list[Ticket] = field(default_factory=list)
    """Tickets of the same job in other variants; the tickets are looked up again in the store after the job's run."""


def run(
    variants: Sequence[PlannedVariant], lookup: Lookup, executor: LocalExecutor, options: Options
) -> Iterator[Event]:
    """Build all variants, each common job once; the last event has the state of the build.

    Closes the executor. If the user interrupts the build, all workers are ended, and no unfinished output is left.
    """
    build = _Build(variants, lookup, executor, options)
    try:
        yield from build.events()
    except KeyboardInterrupt:
        build.abandon()
        yield build.endings.finished(interrupted=True)
    finally:
        build.abandon()
        lookup.store.leave()


class _Build:
    def __init__(
        self, variants: Sequence[PlannedVariant], lookup: Lookup, executor: LocalExecutor, options: Options
    ) -> None:
        self.variants = variants
        self.lookup = lookup
        self.store = lookup.store
        self.executor = executor
        self.options = options
        self.forced: set[Digest] = set()
        self.remade: set[Digest] = set()
        self.endings = Endings(variants, lookup, out=options.out, allow_waiting=options.allow_waiting)
        self.board = self.endings.board
        self.running: dict[Digest, _Running] = {}
        self.tried_locked = 0.0
        self.waits: dict[Digest, tuple[Ticket, float]] = {}
        """The jobs that another builder runs, each with the time at which this builder began to wait."""
        self.announced: set[Digest] = set()
        self.repeated: set[Digest] = set()
        """The keys of jobs that run a second time, because the store was damaged under them."""

    def events(self) -> Iterator[Event]:
        if not self.store.locks_work:
            yield Noticed(_NO_LOCKS.format(self.store.root))
        for variant in self.variants:
            yield Planned(variant.name, tuple((job.name, job.earlier) for job in variant.jobs))
        has = self.board.has
        while has(State.READY, *_STARTABLE, State.RUNNING, State.LOCKED_ELSEWHERE):
            yield from self._fill_slots()
            if has(State.READY):
                yield from self._look_up(self.board.take(State.READY))
            elif has(State.LOCKED_ELSEWHERE) and not self.running:
                time.sleep(_LOCKED_POLL_SECONDS)
            locked = _LOCKED_POLL_SECONDS if has(State.LOCKED_ELSEWHERE) else None
            yield from self._collect(0.0 if has(State.READY) else locked)
            yield from self._announce_waits()
            self._retry_locked()
        yield from self._report_contradictions()
        yield from self.endings.withdrawn()
        yield self.endings.finished(interrupted=False)

    def _report_contradictions(self) -> Iterator[Noticed]:
        """Name the files that changed under equal stat rows; no snapshot can be trusted then."""
        contradicted = self.store.contents.contradicted
        if contradicted:
            self.store.drop_snapshots()
        yield from (Noticed(_CONTRADICTED.format(path)) for path in contradicted)

    def _collect(self, timeout: float | None) -> Iterator[Event]:
        """Handle the outcomes of workers that have finished."""
        if self.running:
            for ident, outcome in self.executor.poll() if timeout is None else self.executor.poll(timeout):
                if isinstance(ident, str):
                    yield from self._take(self.running.pop(Digest(ident)), outcome)

    def _announce_waits(self) -> Iterator[Event]:
        """Say once for each key which other builder runs the job, after this builder has waited for a while."""
        for digest, (ticket, since) in self.waits.items():
            if digest not in self.announced and ticket.state is not State.ENDED and time.monotonic() - since > PATIENCE:
                self.announced.add(digest)
                other = self.store.holder_of(digest)
                name = (ticket.variant.name, ticket.job.name)
                if other is None:
                    yield RunsElsewhere(*name, "another builder")
                else:
                    yield RunsElsewhere(*name, str(other), other.pid, other.host, other.since)

    def _retry_locked(self) -> None:
        if time.monotonic() - self.tried_locked > _LOCKED_POLL_SECONDS:
            self.tried_locked = time.monotonic()
            for ticket in self.board.take_all(State.LOCKED_ELSEWHERE):
                self.board.move(ticket, State.READY)

    def abandon(self) -> None:
        """End all workers and remove their unfinished outputs."""
        self.executor.close()
        for running in self.running.values():
            running.attempt.close()
        self.running.clear()

    def _look_up(self, ticket: Ticket) -> Iterator[Event]:
        """End a job that is cached, skipped, failed or waiting for hardware; queue any other job for a worker."""
        if any(other.ended is None or other.ended.state not in _PASSED for other in self.board.needed(ticket)):
            yield self.endings.end(ticket, "skipped")
            return
        if ticket.key is None:
            taken = self.board.inputs(ticket)
            inputs = {name: content_of(self.board.maker(ticket, name).job, each) for name, each in taken.items()}
            try:
                ticket.key = self.lookup.key(ticket.job, inputs)
            except UserError as error:
                yield self.endings.end(ticket, "failed", error=error)
                return
        if ticket.digest in self.running:
            self._follow(ticket)
            return
        record = self._find_record(ticket)
        away = None if record is not None else self.lookup.away(ticket.job)
        if record is not None and not self._remakes(ticket):
            yield self.endings.settle(ticket, record, "cached")
            return
        if away is not None and not self._stopping():
            from engine.builder import lacking

            lack = lacking.lack(away)
            yield self.endings.end(ticket, "waiting", waits_for=str(away), advice=lack.advice if lack else "")
            return
        self.board.move(ticket, State.STARTABLE_ALONE if ticket.job.traits.exclusive else State.STARTABLE)

    def _fill_slots(self) -> Iterator[Event]:
        """Start jobs in free slots. A job that must run alone starts when no other job runs or can start."""
        alone = any(running.ticket.job.traits.exclusive for running in self.running.values())
        has = self.board.has
        while has(State.STARTABLE) and not alone and self.executor.busy < self.executor.slots:
            yield from self._start_or_settle(self.board.take(State.STARTABLE))
        if has(State.STARTABLE_ALONE) and not (has(State.STARTABLE, State.READY) or self.running):
            yield from self._start_or_settle(self.board.take(State.STARTABLE_ALONE))

    def _follow(self, ticket: Ticket) -> None:
        """Let a ticket wait for the worker that runs the same job for another variant."""
        self.running[ticket.digest].followers.append(ticket)
        self.board.move(ticket, State.FOLLOWING)

    def _find_record(self, ticket: Ticket) -> Record | None:
        """Return the record of a job, or None; None also for a job that `--force` runs again."""
        if ticket.job.name in self.options.force and ticket.digest not in self.forced:
            return None
        self.store.use(ticket.digest)
        record = self.lookup.find(ticket.job, ticket.known_key)
        if record is not None and record.digest != ticket.digest:  # a record from another machine
            ticket.rekey(record.key)
            self.store.use(ticket.digest)
        return record

    def _remakes(self, ticket: Ticket) -> bool:
        """Say whether a stored job runs again, to compare the bytes. A job of another machine cannot run here."""
        new = remake.includes(self.options.remake, ticket.job) and ticket.digest not in self.remade
        return new and self.lookup.away(ticket.job) is None

    def _start_or_settle(self, ticket: Ticket) -> Iterator[Event]:
        """Start a ticket's job, unless another worker or builder runs the job or has finished it meanwhile."""
        if self._stopping():
            yield self.endings.end(ticket, "skipped")
            return
        if ticket.digest in self.running:
            self._follow(ticket)
            return
        try:
            lock = self.store.try_lock(ticket.digest, task=f"{ticket.variant.name} {ticket.job.name}")
            if lock is None:
                self.waits.setdefault(ticket.digest, (ticket, time.monotonic()))
                self.board.move(ticket, State.LOCKED_ELSEWHERE)
                return
            # Another builder may have finished the job between the look-up and the lock.
            record = self._find_record(ticket)
            if record is None or self._remakes(ticket):
                yield self._start(ticket, lock, stored=record)
                return
            lock.release()
        except UserError as error:
            yield self.endings.end(ticket, "failed", error=error)
        else:
            yield self.endings.settle(ticket, record, "cached")

    def _start(self, ticket: Ticket, lock: FileLock, *, stored: Record | None) -> Started:
        traits = ticket.job.traits
        attempt = Attempt.prepare(self.lookup, ticket.job, ticket.known_key, self.board.inputs(ticket), lock)
        try:
            self.executor.submit(
                str(ticket.digest),
                attempt.task,
                tools=traits.tools,
                variables=traits.variables,
                time_limit=traits.time_limit,
            )
        except OSError as error:  # no further process, or no further open file
            attempt.close()
            raise limits.failure(error) or error from error
        self.running[ticket.digest] = _Running(ticket, attempt, stored)
        self.board.move(ticket, State.RUNNING)
        return Started(ticket.variant.name, ticket.job.name, attempt.log)

    def _take(self, running: _Running, outcome: Outcome) -> Iterator[Event]:
        """End a job after its worker sent an outcome: with the job's new record, or with an error."""
        ticket = running.ticket
        try:
            record = running.attempt.record(outcome) if running.stored is None else self._compare(running, outcome)
        except DamagedInputError as error:
            if error.mended and ticket.digest not in self.repeated:
                self.repeated.add(ticket.digest)
                yield Noticed(f"{error.what}; the store is mended, and {ticket.job.name!r} runs again")
                for each in (ticket, *running.followers):
                    self.board.move(each, State.READY)
                return
            yield from self._fail(running, error, outcome)
        except UserError as error:
            yield from self._fail(running, error, outcome)
        else:
            self.forced.add(ticket.digest)
            state: JobState = "built" if running.stored is None else "reproduced"
            yield self.endings.settle(ticket, record, state, seconds=outcome.seconds)
            for follower in running.followers:
                self.board.move(follower, State.READY)
        finally:
            running.attempt.close()

    def _compare(self, running: _Running, outcome: Outcome) -> Record:
        """Return the stored record of a job that was made again.

        Raises StepError if the second run wrote other bytes, and UserError if the run failed.
        """
        ticket, stored = running.ticket, running.stored
        if stored is None:
            raise AssertionError("only a job with a record is made again")
        self.remade.add(ticket.digest)
        running.attempt.check(outcome)
        keep = self.options.out / remake.FOLDER / ticket.variant.name / ticket.job.name
        out = Path(running.attempt.task.out)
        remake.refuse_differences(self.store, stored, ticket.job, out, outcome.files, keep=keep)
        return stored

    def _fail(self, running: _Running, error: UserError, outcome: Outcome) -> Iterator[Event]:
        for each in (running.ticket, *running.followers):
            if running.stored is None:
                yield self.endings.fail(each, error, seconds=outcome.seconds)
            else:  # the stored result is as good as before
                yield self.endings.end(each, "failed", seconds=outcome.seconds, error=error)

    def _stopping(self) -> bool:
        return not self.options.keep_going and self.endings.any_failed
