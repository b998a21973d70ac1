"""The build loop: find each job's artifact or make it; yields Events."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from engine.builder import demands, remake
from engine.builder.awaiting import Awaiting
from engine.builder.endings import Endings
from engine.builder.executors.executor import DisplacedError, Executor, LackingInputError, Releasable, Run, RunOrder
from engine.builder.inputs import DamagedInputError
from engine.builder.locked import POLL_SECONDS, LockedJobs
from engine.builder.lookup import Lookup, content_of
from engine.builder.tickets import State, Ticket
from engine.builder.variant import PlannedVariant
from engine.builder.worker_task import Outcome
from engine.digest import Digest
from engine.errors import StepError, UserError
from engine.events import Awaits, Ended, Event, Finished, JobState, Noticed, Planned, Started
from engine.store.record import Record
from engine.system import interrupts, limits

if TYPE_CHECKING:
    from engine.step import Hardware

_MOVING_POLL_SECONDS = 1.0
_NO_LOCKS = (
    "the file system of {} has no working locks: builders that share this store may repeat each other's work "
    "(each result is whole all the same), and nothing can be collected from it"
)
_CONTRADICTED = "{} has another content than an earlier build read, although its size and its times are the same"
_NOT_BROUGHT = "the output of {!r} cannot be brought from the remote: the job runs here"
_MOST_PLACES = 4
"""On how many machines a job is tried, if each of them is lost while the job runs."""
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
    wait: float | None = None
    """For how many seconds the build waits for results of other machines; None if it does not wait."""
    runs: bool = True
    """Whether jobs run. If not, a job without a record fails, and the last outputs of each variant are brought."""
    is_what_if: bool = False
    """Whether the command line overrides the recipes: a build that fails then leaves older packages in place."""


@dataclass(frozen=True)
class _Running:
    ticket: Ticket
    run: Run
    stored: Record | None = None
    """The record whose artifact is compared with the output, if the job is only made again."""
    followers: list[Ticket] = field(default_factory=list)
    """Tickets of the same job in other variants; the tickets are looked up again in the store after the job's run."""


def run(variants: Sequence[PlannedVariant], lookup: Lookup, executor: Executor, options: Options) -> Iterator[Event]:
    """Build all variants, each common job once; the last event has the state of the build.

    Closes the executor. If the user interrupts the build, all workers are ended, and no unfinished output is left.
    A build that only waits for other machines stops waiting then.
    """
    is_ours = interrupts.install()
    build = _Build(variants, lookup, executor, options)
    try:
        yield from interrupts.between(build.events(), Finished)
    except KeyboardInterrupt:
        yield from interrupts.between(build.events_after_interruption(), Finished)
    finally:
        build.abandon()
        lookup.store.leave()
        if is_ours:
            interrupts.restore()


class _Build:
    def __init__(
        self, variants: Sequence[PlannedVariant], lookup: Lookup, executor: Executor, options: Options
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
        self.awaiting = Awaiting(options.wait)
        self.locked = LockedJobs(self.store, executor)
        self.is_moving = False
        """Whether something is on its way to the remote."""
        self.repeated: Counter[Digest] = Counter()
        """How often the jobs of keys ran again, because the store was damaged under them or their machine was lost."""

    def events(self) -> Generator[Event, None, None]:
        if not self.store.locks_work:
            yield Noticed(_NO_LOCKS.format(self.store.root))
        for variant in self.variants:
            jobs = tuple((job.name, job.earlier) for job in variant.jobs)
            yield Planned(variant.name, jobs, self.endings.lasted(variant))
        yield from self._events_of_jobs()

    def events_after_interruption(self) -> Generator[Event, None, None]:
        """End the build; or only its waiting, if nothing but other machines' results is left."""
        if self._only_awaits():
            self.awaiting.give_up()
            yield from self._events_of_jobs()
            return
        self.abandon()
        yield self.endings.finished(interrupted=True, is_what_if=self.options.is_what_if)

    def _only_awaits(self) -> bool:
        working = (State.READY, *_STARTABLE, State.RUNNING, State.LOCKED_ELSEWHERE)
        return self.board.has(State.AWAITED) and not self.board.has(*working) and not self.awaiting.is_over

    def _events_of_jobs(self) -> Iterator[Event]:
        has = self.board.has
        while has(State.READY, *_STARTABLE, State.RUNNING, State.LOCKED_ELSEWHERE, State.AWAITED):
            yield from self._fill_slots()
            if has(State.READY):
                yield from self._look_up(self.board.take(State.READY))
            elif has(State.LOCKED_ELSEWHERE) and not self.running:
                time.sleep(POLL_SECONDS)
            elif has(State.AWAITED) and not self.running:
                self.awaiting.rest()
            yield from self._collect(self._patience())
            self.is_moving = self.store.tier is not None and self.store.tier.pulse()
            yield from self._look_for_awaited()
            yield from self.locked.announce()
            self._retry_locked()
        yield from self._report_contradictions()
        yield from self._finish_pushes()
        yield from () if self.options.is_what_if else self.endings.withdrawn()
        yield self.endings.finished(interrupted=False, is_what_if=self.options.is_what_if)

    def _patience(self) -> float | None:
        """Return for how long the loop may wait for its own workers; None for any time."""
        if self.board.has(State.READY):
            return 0.0
        locked = [POLL_SECONDS] if self.board.has(State.LOCKED_ELSEWHERE) else []
        awaited = [self.awaiting.left] if self.board.has(State.AWAITED) else []
        moving = [_MOVING_POLL_SECONDS] if self.is_moving else []
        return min([*locked, *awaited, *moving], default=None)

    def _look_for_awaited(self) -> Iterator[Event]:
        """Let jobs go on whose results have come from other machines; end all awaited jobs if the waiting is over."""
        if self.board.has(State.AWAITED) and (self.awaiting.left <= 0 or self._stopping()):
            for ticket in self.awaiting.look(self.lookup):
                self.board.move(ticket, State.READY)
            if self._stopping() or self.awaiting.is_over:
                yield from [self._end_waiting(ticket, away) for ticket, away in self.awaiting.still]

    def _end_waiting(self, ticket: Ticket, away: Hardware) -> Ended:
        return self.endings.end(ticket, "waiting", waits_for=str(away), advice=self.lookup.advice(away))

    def _finish_pushes(self) -> Iterator[Noticed]:
        """Wait until the remote has what this build made, and say in one line what came from there and went there."""
        tier = self.store.tier
        if tier is not None:
            tier.wait()
            tier.pulse()
            if line := tier.summary():
                yield Noticed(line)

    def _report_contradictions(self) -> Iterator[Noticed]:
        """Name the files that changed under equal stat rows; no snapshot can be trusted then."""
        contradicted = self.store.contents.contradicted
        if contradicted:
            self.store.drop_snapshots()
        yield from (Noticed(_CONTRADICTED.format(path)) for path in contradicted)

    def _collect(self, timeout: float | None) -> Iterator[Event]:
        """Handle the outcomes of workers that have finished."""
        if self.running or self.board.has(*_STARTABLE):
            for ident, outcome in self.executor.poll() if timeout is None else self.executor.poll(timeout):
                yield from self._take(self.running.pop(Digest(ident)), outcome)
        if self.executor.has_changed():
            self.lookup.look_at_machines_again()
            for state in _STARTABLE:
                for ticket in self.board.take_all(state):
                    ticket.rekey(None)
                    self.board.move(ticket, State.READY)

    def _retry_locked(self) -> None:
        if self.locked.is_due():
            for ticket in self.board.take_all(State.LOCKED_ELSEWHERE):
                self.board.move(ticket, State.READY)

    def abandon(self) -> None:
        """End all workers and remove their unfinished outputs."""
        self.executor.close()
        for running in self.running.values():
            running.run.close()
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
            arrival = self.awaiting.arrived(ticket, record)
            yield self.endings.settle(ticket, record, "cached", arrival=arrival)
            return
        if not self.options.runs:
            yield self.endings.end(ticket, "failed", error=_without_record(ticket))
            return
        if away is not None and not self._stopping():
            yield from self._await(ticket, away)
            return
        demand = demands.of(ticket.job, self.board.inputs(ticket), ticket.memory)
        ticket.lane = self.executor.lane(ticket.job, demand)
        self.board.move(ticket, State.STARTABLE_ALONE if ticket.job.traits.exclusive else State.STARTABLE)

    def _await(self, ticket: Ticket, away: Hardware) -> Iterator[Event]:
        """Await the result of a job that needs other hardware, or end the job if the build does not wait."""
        if ticket.job.step_name in self.options.force or not self.awaiting.is_on:
            yield self._end_waiting(ticket, away)
            return
        is_new = self.awaiting.add(ticket, away)
        self.board.move(ticket, State.AWAITED)
        if is_new:
            yield Awaits(ticket.variant.name, ticket.job.name, str(away), self.lookup.advice(away))

    def _fill_slots(self) -> Iterator[Event]:
        """Start the jobs for which there is room. Jobs that must run alone come after all others that can start."""
        while ticket := self.board.take_fitting(State.STARTABLE, self.executor.has_room):
            yield from self._start_or_settle(ticket)
        while not self.board.has(State.READY) and (
            ticket := self.board.take_fitting(State.STARTABLE_ALONE, self.executor.has_room)
        ):
            yield from self._start_or_settle(ticket)

    def _follow(self, ticket: Ticket) -> None:
        """Let a ticket wait for the worker that runs the same job for another variant."""
        self.running[ticket.digest].followers.append(ticket)
        self.board.move(ticket, State.FOLLOWING)

    def _find_record(self, ticket: Ticket) -> Record | None:
        """Return the record of a job, or None; None also for a job that `--force` runs again."""
        if ticket.job.step_name in self.options.force and ticket.digest not in self.forced:
            return None
        self.store.use(ticket.digest)
        record = self.lookup.find(ticket.job, ticket.known_key)
        if record is not None and record.digest != ticket.digest:  # a record from another machine
            ticket.rekey(record.key)
            self.store.use(ticket.digest)
        is_result = ticket.job.traits.delivers or not (self.options.runs or ticket.dependents)
        if record is not None and is_result and not self.store.bring(record):
            return None
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
        try:
            placed = self.lookup.placed(ticket.job, ticket.known_key, ticket.lane)
            if placed is not ticket.key:
                ticket.rekey(placed)
        except UserError as error:
            yield self.endings.end(ticket, "failed", error=error)
            return
        if ticket.digest in self.running:
            self._follow(ticket)
            return
        try:
            lock = self.store.try_lock(ticket.digest, task=f"{ticket.variant.name} {ticket.job.name}")
            right = None if lock is None else self.executor.claim(str(ticket.digest), lock)
            if right is None:
                self.locked.add(ticket)
                self.board.move(ticket, State.LOCKED_ELSEWHERE)
                return
            # Another builder may have finished the job between the look-up and the lock.
            record = self._find_record(ticket)
            if record is None or self._remakes(ticket):
                yield self._start(ticket, right, stored=record)
                return
            right.release()
        except UserError as error:
            yield self.endings.end(ticket, "failed", error=error)
        else:
            yield self.endings.settle(ticket, record, "cached")

    def _start(self, ticket: Ticket, right: Releasable, *, stored: Record | None) -> Started | Noticed:
        order = RunOrder(self.lookup, ticket.job, ticket.known_key, self.board.inputs(ticket), right, ticket.lane)
        try:
            run = self.executor.start(str(ticket.digest), order)
        except LackingInputError as error:
            maker = self.board.maker(ticket, error.input)
            self.board.reopen(maker, ticket)
            return Noticed(_NOT_BROUGHT.format(maker.job.name))
        except OSError as error:  # no further process, or no further open file
            raise limits.failure(error) or error from error
        self.running[ticket.digest] = _Running(ticket, run, stored)
        self.board.move(ticket, State.RUNNING)
        return Started(ticket.variant.name, ticket.job.name, run.log, run.node)

    def _take(self, running: _Running, outcome: Outcome) -> Iterator[Event]:
        """End a job after its worker sent an outcome: with the job's new record, or with an error."""
        ticket = running.ticket
        try:
            record = running.run.record(outcome) if running.stored is None else self._compare(running, outcome)
        except DamagedInputError as error:
            if error.mended and self.repeated[ticket.digest] < 1:
                yield self._again(running, f"{error.what}; the store is mended")
                return
            yield from self._fail(running, error, outcome)
        except DisplacedError as error:
            if self.repeated[ticket.digest] < _MOST_PLACES - 1:
                yield self._again(running, error.what)
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
            running.run.close()

    def _again(self, running: _Running, why: str) -> Noticed:
        """Let a job run again, wherever there is room."""
        self.repeated[running.ticket.digest] += 1
        for each in (running.ticket, *running.followers):
            each.rekey(None)
            self.board.move(each, State.READY)
        return Noticed(f"{why}, and {running.ticket.job.name!r} runs again")

    def _compare(self, running: _Running, outcome: Outcome) -> Record:
        """Return the stored record of a job that was made again.

        Raises StepError if the second run wrote other bytes, and UserError if the run failed.
        """
        ticket, stored = running.ticket, running.stored
        if stored is None:
            raise AssertionError("only a job with a record is made again")
        self.remade.add(ticket.digest)
        keep = self.options.out / remake.FOLDER / ticket.variant.name / ticket.job.name
        running.run.compare(outcome, stored, keep=keep)
        return stored

    def _fail(self, running: _Running, error: UserError, outcome: Outcome) -> Iterator[Event]:
        for each in (running.ticket, *running.followers):
            if running.stored is None:
                yield self.endings.fail(each, error, seconds=outcome.seconds)
            else:  # the stored result is as good as before
                yield self.endings.end(each, "failed", seconds=outcome.seconds, error=error)

    def _stopping(self) -> bool:
        return not self.options.keep_going and self.endings.any_failed


def _without_record(ticket: Ticket) -> StepError:
    return StepError(
        f"there is no record of {ticket.job.name!r} of {ticket.variant.name}",
        [f"key: {ticket.digest}", "nothing is built here: records come from the store and its remote only"],
        "build the recipe where its jobs can run, with the same remote; or push what was built: `recipe cache push`",
    )
