"""The build loop: find each job's artifact or make it; yields Events."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import chain

from engine.builder import build_end, job_end, remake
from engine.builder.awaiting import Awaiting
from engine.builder.executors.executor import (
    DisplacedError,
    Executor,
    LackingInputError,
    LostError,
    Releasable,
    Run,
    RunOrder,
    demand_of,
)
from engine.builder.inputs import DamagedInputError
from engine.builder.job_end import Ending
from engine.builder.lookup import Lookup, content_of
from engine.builder.options import Options
from engine.builder.states import PASSED, State, States, Ticket
from engine.builder.variant import PlannedVariant
from engine.builder.worker_task import Outcome
from engine.digest import Digest
from engine.errors import UserError
from engine.events import Ended, Event, Finished, Noticed, Planned, RunsElsewhere, Started
from engine.store.file_lock import PATIENCE
from engine.store.record import Record
from engine.system import interrupts, limits

POLL_SECONDS, LOCK_SECONDS = 0.2, 0.05
"""The longest that the loop waits for its workers: in general, and while another builder has a lock that it needs.

On a cluster, each look for what another builder has is a question to its head, for each job that waits.
"""
_NO_LOCKS = (
    "the file system of {} has no working locks: builders that share this store may repeat each other's work "
    "(each result is whole all the same), and nothing can be collected from it"
)
_MOST_PLACES = 4
"""On how many machines a job is tried, if each of them is lost while the job runs."""
_STARTABLE = (State.STARTABLE, State.STARTABLE_ALONE)
_WORKING = (State.READY, *_STARTABLE, State.RUNNING, State.LOCKED_ELSEWHERE)


def run(
    variants: Sequence[PlannedVariant], lookup: Lookup, executor: Executor, options: Options
) -> Generator[Event, None, None]:
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
        self.began = time.monotonic()
        self.before = {variant.name: lookup.heads.before(variant.subject) for variant in variants}
        self.states = States(variants, {name: head for name, (head, _) in self.before.items()})
        self.awaiting = Awaiting(self.states, lookup, options)

    def events(self) -> Generator[Event, None, None]:
        if not self.store.has_file_locks:
            yield Noticed(_NO_LOCKS.format(self.store.root))
        for variant in self.variants:
            notes = self.before[variant.name][0].jobs.items()
            lasted = tuple((job, note.seconds) for job, note in notes if note.seconds is not None)
            yield Planned(variant.name, tuple((job.name, job.earlier) for job in variant.jobs), lasted)
        yield from self._work()

    def events_after_interruption(self) -> Generator[Event, None, None]:
        """End the build; or only its waiting, if nothing but other machines' results is left."""
        if not self.states.has(*_WORKING) and (ends := self.awaiting.give_up()):
            yield from [self._end(each) for each in ends]
            yield from self._work()
            return
        self.abandon()
        yield from self._close(interrupted=True)

    def abandon(self) -> None:
        """End all workers and remove their unfinished outputs."""
        self.executor.close()
        for ticket in self.states.tickets:
            if ticket.run is not None:
                ticket.run.close()
                ticket.run = None

    def _work(self) -> Iterator[Event]:
        """Move all tickets to their ends, and end the build."""
        while self.states.has(*_WORKING, State.AWAITED):
            for each in chain(self._look_up(), self._fill_slots(), self._collect(), self._look_again()):
                yield self._end(each) if isinstance(each, Ending) else each
        yield from self._close(interrupted=False)

    def _close(self, *, interrupted: bool) -> Iterator[Event]:
        tickets, began = self.states.tickets, self.began
        return build_end.conclude(tickets, self.lookup, self.before, self.options, began=began, interrupted=interrupted)

    def _end(self, ending: Ending) -> Ended:
        """End a job: here alone do tickets end."""
        ticket, record = ending.ticket, ending.record
        if record is not None:
            self.states.rekey(ticket, record.key)  # a record from another machine has a key of its own
        ran = None if record is None else self.states.ran(ticket.digest)
        is_new = ran is not None and ran.stored is None
        event = job_end.event_of(ending, self.lookup, is_new=is_new, out=self.options.place)
        self.states.end(ticket, event, record)
        return event

    def _look_up(self) -> Iterator[Ending | Event]:
        """Look for the result of the next job; end a job that is cached or cannot run, and queue any other one."""
        ticket = self.states.take(State.READY)
        if ticket is None or self.states.block(ticket):
            return
        if any(other.ended is None or other.ended.state not in PASSED for other in ticket.earlier):
            yield Ending(ticket, "skipped")
            return
        if ticket.key is None:
            inputs = {name: content_of(ticket.makers[name].job, record) for name, record in ticket.inputs.items()}
            try:
                self.states.rekey(ticket, self.lookup.key(ticket.job, inputs))
            except UserError as error:
                yield Ending(ticket, "failed", error=error)
                return
        if self.states.follow(ticket):
            return
        record = self._find_record(ticket, self.states.ran(ticket.digest))
        waits_for = None if record is not None else self.lookup.waits_for(ticket.job)
        if record is not None:
            yield Ending(ticket, "cached", record, arrival=self.awaiting.arrival(ticket, record))
        elif not self.options.runs:
            yield Ending(ticket, "failed", error=job_end.without_record(ticket))
        elif waits_for is not None and not self._stopping():
            yield from self.awaiting.begin(ticket, waits_for)
        else:
            memory = None if ticket.note is None else ticket.note.memory
            ticket.lane = self.executor.lane(ticket.job, demand_of(ticket.job, ticket.inputs, memory))
            self.states.move(ticket, State.STARTABLE_ALONE if ticket.job.traits.exclusive else State.STARTABLE)

    def _find_record(self, ticket: Ticket, ran: Ticket | None) -> Record | None:
        """Return the record of a job, or None; None also for a job that `--force` or `--remake` runs again.

        `ran` is the ticket with the same key whose job has run in this build.
        """
        ticket.stored = None
        if ticket.job.step_name in self.options.force and (ran is None or ran.record is None):
            return None
        self.store.use(ticket.digest)
        record = self.lookup.find(ticket.job, ticket.known_key)
        if record is None:
            return None
        self.store.use(record.digest)
        is_result = ticket.job.traits.delivers or not (self.options.runs or ticket.dependents)
        if is_result and not self.store.bring(record):
            return None
        if (
            ran is None
            and remake.includes(self.options.remake, ticket.job)
            and self.lookup.waits_for(ticket.job) is None
        ):
            ticket.stored = record
            return None
        return record

    def _fill_slots(self) -> Iterator[Ending | Event]:
        """Start the jobs for which there is room. Jobs that must run alone come after all others that can start."""
        while ticket := self.states.take(State.STARTABLE, self.executor.has_room):
            yield from self._start(ticket)
        while not self.states.has(State.READY) and (
            ticket := self.states.take(State.STARTABLE_ALONE, self.executor.has_room)
        ):
            yield from self._start(ticket)

    def _start(self, ticket: Ticket) -> Iterator[Ending | Event]:
        """Start a ticket's job, unless another worker or builder runs the job or has finished it meanwhile."""
        if self._stopping():
            yield Ending(ticket, "skipped")
            return
        if self.states.block(ticket):
            return
        try:
            self.states.rekey(ticket, self.lookup.placed(ticket.job, ticket.known_key, ticket.lane))
            if self.states.follow(ticket):
                return
            self.states.lead(ticket)
            lock = self.store.try_lock(ticket.digest, task=f"{ticket.variant.name} {ticket.job.name}")
            right = "" if lock is None else self.executor.claim(str(ticket.digest), lock)
            if isinstance(right, str):
                ticket.holder = right
                ticket.elsewhere_since = ticket.elsewhere_since or time.monotonic()
                self.states.move(ticket, State.LOCKED_ELSEWHERE)
                return
            with ExitStack() as resources:
                resources.callback(right.release)
                # Another builder may have finished the job between the look-up and the lock.
                if ticket.holder and self.store.tier is not None:
                    self.store.tier.look_again()
                record = self._find_record(ticket, self.states.ran(ticket.digest))
                if record is None:
                    resources.pop_all()  # the run has the lock from here on
            if record is None:
                yield from self._run(ticket, right)
            else:
                yield Ending(ticket, "cached", record)
        except UserError as error:
            yield Ending(ticket, "failed", error=error)

    def _run(self, ticket: Ticket, right: Releasable) -> Iterator[Event]:
        forced = ticket.job.step_name in self.options.force
        order = RunOrder(self.lookup, ticket.job, ticket.known_key, ticket.inputs, right, ticket.lane, forced)
        try:
            ticket.run = self.executor.start(str(ticket.digest), order)
        except LackingInputError as error:
            yield from self._reopen(ticket, error.inputs)
            return
        except OSError as error:  # no further process, or no further open file
            raise limits.failure(error) or error from error
        self.states.move(ticket, State.RUNNING)
        if ticket.run.node is not None:
            yield Started(ticket.variant.name, ticket.job.name, ticket.run.log, ticket.run.node)

    def _reopen(self, ticket: Ticket, inputs: Iterable[str] = ()) -> Iterator[Event]:
        """Let a job be looked up again, after the jobs that make those of its inputs that nobody has."""
        self.states.rekey(ticket, None)
        self.states.move(ticket, State.READY)
        for maker in (ticket.makers[name] for name in inputs if name in ticket.makers):
            record = maker.record
            if record is not None and not (self.store.read(record.digest) and self.store.bring(record)):
                self.states.reopen(maker)
                yield Noticed(f"the output of {maker.job.name!r} cannot be brought from the remote: the job runs again")

    def _collect(self) -> Iterator[Ending | Event]:
        """Wait for workers, and handle the outcomes of those that have finished."""
        if self.states.has(State.RUNNING, *_STARTABLE, State.LOCKED_ELSEWHERE, State.AWAITED):
            is_quick = self.states.has(State.LOCKED_ELSEWHERE) and self.lookup.machines is None
            patience = LOCK_SECONDS if is_quick else POLL_SECONDS
            for ident, outcome in self.executor.poll(0.0 if self.states.has(State.READY) else patience):
                ticket = self.states.leader(Digest(ident))
                if ticket is None or (run := ticket.run) is None:
                    raise AssertionError(f"an outcome has come of a job that does not run: {ident}")
                if outcome is None:
                    yield Started(ticket.variant.name, ticket.job.name, run.log, run.node or "")
                    continue
                try:
                    yield from self._take(ticket, run, outcome)
                finally:
                    run.close()
                    ticket.run = None
        if self.executor.has_changed():
            self.lookup.look_at_machines_again()
            for ticket in self.states.take_all(*_STARTABLE):
                self.states.rekey(ticket, None)
                self.states.move(ticket, State.READY)
        if self.store.tier is not None:
            self.store.tier.pulse()

    def _take(self, ticket: Ticket, run: Run, outcome: Outcome) -> Iterator[Ending | Event]:
        """End a job after its worker sent an outcome: with the job's new record, or with an error."""
        stored = ticket.stored
        try:
            if stored is not None:
                keep = self.options.place / remake.FOLDER / ticket.variant.name / ticket.job.name
                run.compare(outcome, stored, keep=keep)
            record = run.record(outcome) if stored is None else stored
        except UserError as error:
            is_mended = isinstance(error, DamagedInputError) and error.mended
            once = is_mended or isinstance(error, LostError)
            if ticket.reruns < (_MOST_PLACES - 1 if isinstance(error, DisplacedError) else int(once)):
                for each in (ticket, *ticket.followers):
                    each.reruns += 1
                why = f"{error.what}; the store is mended" if is_mended else error.what
                yield Noticed(f"{why}, and {ticket.job.name!r} runs again")
                yield from self._reopen(ticket, error.inputs if isinstance(error, LackingInputError) else ())
                return
            same, ticket.followers = (ticket, *ticket.followers), []
            for each in same:
                each.has_run, each.stored = True, stored
                yield Ending(each, "failed", seconds=outcome.seconds, error=error)
        else:
            ticket.has_run = True
            yield Ending(ticket, "built" if stored is None else "reproduced", record, outcome.seconds)

    def _look_again(self) -> Iterator[Ending | Event]:
        """Let jobs go on that other builders, or other machines, may have finished by now."""
        now = time.monotonic()
        for ticket in [] if self.states.has(State.READY) else self.states.take_all(State.LOCKED_ELSEWHERE):
            if not ticket.is_announced and now - (ticket.elsewhere_since or now) > PATIENCE:
                ticket.is_announced = True
                names = (ticket.variant.name, ticket.job.name)
                if other := self.store.holder_of(ticket.digest):
                    yield RunsElsewhere(*names, str(other), other.pid, other.host, other.since)
                else:
                    yield RunsElsewhere(*names, ticket.holder or "another builder")
            self.states.move(ticket, State.READY)
        yield from self.awaiting.look(is_over=self._stopping())

    def _stopping(self) -> bool:
        return not self.options.keep_going and self.states.has_failed
