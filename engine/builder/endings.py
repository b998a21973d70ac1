"""End the jobs of a build: judge reports, copy packages to `build/`, note the runs, and sum up the build."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path

from engine.builder import chronicle
from engine.builder.board import Board
from engine.builder.job import step_of
from engine.builder.lookup import Lookup
from engine.builder.tickets import Ticket
from engine.builder.trace import declaring
from engine.builder.variant import PlannedVariant, before
from engine.digest import Digest
from engine.errors import Exit, FieldError, JudgementError, PrecisionError, StoreError, UserError
from engine.events import Arrival, BuildState, Ended, Finished, Gap, JobState, Noticed
from engine.store.heads import Head, JobNote, Unfinished, job_note
from engine.store.materialize import materialize, withdraw
from engine.store.record import Record
from engine.text import redaction


class Endings:
    """The endings of a build's jobs: end tickets, and collect exit codes, packages and notes for the next build."""

    def __init__(self, variants: Sequence[PlannedVariant], lookup: Lookup, *, out: Path, allow_waiting: bool) -> None:
        self._variants = variants
        self._lookup = lookup
        self._out = out
        self._allow_waiting = allow_waiting
        self._started = time.monotonic()
        self._exits: list[Exit] = []
        self._packages: dict[str, Path] = {}
        self._ran: set[Digest] = set()
        self._before = {variant.name: lookup.heads.before(variant.subject) for variant in variants}
        self._heads = {name: head for name, (head, _) in self._before.items()}
        self._notes: dict[str, dict[str, JobNote]] = {variant.name: {} for variant in variants}
        self.board = Board(variants, self._heads)

    def lasted(self, variant: PlannedVariant) -> tuple[tuple[str, float], ...]:
        """Return how many seconds jobs of a variant took when they ran last, where that is known."""
        notes = self._heads[variant.name].jobs.items()
        return tuple((job, note.seconds) for job, note in notes if note.seconds is not None)

    @property
    def any_failed(self) -> bool:
        """Whether a job has failed."""
        return any(code is not Exit.WAITING for code in self._exits)

    def settle(
        self,
        ticket: Ticket,
        record: Record,
        state: JobState,
        *,
        seconds: float = 0.0,
        arrival: Arrival | None = None,
    ) -> Ended:
        """End a job that has a record: judge the report, and copy the package to `build/` if the job made it."""
        ticket.record = record
        self._note(ticket, passed=True)
        if state == "built":
            self._ran.add(record.digest)
        traits = ticket.job.traits
        gaps = declaring.gaps_of(record)
        try:
            self._lookup.accept(ticket.job, record)
            if ticket.job.hermetic:
                declaring.refuse(ticket.job.name, gaps)
            if traits.reads_report and not self._lookup.rows.is_judged(ticket.job, record):
                _judge(ticket, record)
            if traits.delivers:
                place = self._out / ticket.variant.name
                materialize(self._lookup.store, record, place)
                self._packages[ticket.variant.name] = place
            self._push(ticket, record)
        except JudgementError as judged:
            error = self._explained(ticket, judged)
            if record.digest not in self._ran:
                return self.end(ticket, "failed", error=_replayed(error, record), measured_at=record.made_at)
            return self.end(ticket, "failed", seconds=seconds, error=error)
        except UserError as error:
            return self.end(ticket, "failed", seconds=seconds, error=error)
        ours = ticket.job.traits.kind.startswith(f"{declaring.OURS}.")
        return self.end(ticket, state, seconds=seconds, gaps=() if ours else gaps, arrival=arrival)

    def _explained(self, ticket: Ticket, error: JudgementError) -> JudgementError:
        """Return an error about a precision with the reasons in the reports of the jobs before; any other as it is."""
        from engine.builder import reports
        from engine.reporting import TypedReport

        if not isinstance(error, PrecisionError):
            return error
        steps = {job.name: type(job.step) for job in ticket.variant.jobs}
        facts = list(error.facts)
        for name in before(ticket.variant, ticket.job):
            record = self.board.record(ticket, name)
            report = None if record is None else reports.read(steps[name], record)
            facts += report.reasons() if isinstance(report, TypedReport) else []
        return JudgementError(error.what, facts, error.hint)

    def _push(self, ticket: Ticket, record: Record) -> None:
        tier = self._lookup.store.tier
        if tier is not None:
            records = (self.board.record(ticket, name) for name in before(ticket.variant, ticket.job))
            tier.push_new(record, earlier=[each for each in records if each is not None])

    def fail(self, ticket: Ticket, error: UserError, *, seconds: float) -> Ended:
        """End a job whose run failed; an error about a field of the recipe gets its place there."""
        if isinstance(error, FieldError):
            loaded = ticket.variant.loaded
            error = loaded.error(error.what, *error.path, facts=error.facts, hint=error.hint)
        self._note(ticket, passed=False)
        return self.end(ticket, "failed", seconds=seconds, error=error)

    def end(
        self,
        ticket: Ticket,
        state: JobState,
        *,
        seconds: float = 0.0,
        error: UserError | None = None,
        waits_for: str | None = None,
        advice: str = "",
        gaps: tuple[Gap, ...] = (),
        arrival: Arrival | None = None,
        measured_at: float | None = None,
    ) -> Ended:
        """End a ticket's job in the state `state`, without judging a report."""
        if error is not None:
            self._exits.append(error.exit)
        if waits_for is not None and not self._allow_waiting:
            self._exits.append(Exit.WAITING)
        record = ticket.record
        ended = Ended(
            recipe=ticket.variant.name,
            job=ticket.job.name,
            state=state,
            seconds=round(seconds, 3),
            key=str(ticket.digest) if ticket.key is not None else None,
            artifact=str(record.artifact) if record else None,
            path=self._lookup.store.artifact_path(record.artifact) if record else None,
            waits_for=waits_for,
            advice=advice,
            error=error,
            gaps=gaps,
            arrival=arrival,
            measured_at=measured_at,
        )
        self.board.end(ticket, ended)
        return ended

    def withdrawn(self) -> Iterator[Noticed]:
        """Move away each package of an earlier build that this build could not deliver again, and tell the user.

        The recipe at present does not vouch for such a package: a bound was missed, a job failed, or a job waits for
        hardware. A package is left in its place if its jobs were not reached.
        """
        ended = [ticket.ended for ticket in self.board.tickets if ticket.ended is not None]
        unbuilt = {each.recipe for each in ended if each.state in ("failed", "waiting")} - self._packages.keys()
        for variant in self._variants:
            if variant.name not in unbuilt or not any(job.traits.delivers for job in variant.jobs):
                continue
            place = self._out / variant.name
            try:
                aside = withdraw(self._lookup.store, place)
            except StoreError as error:
                text = f"{error.what}; it is from an earlier build, and this build does not vouch for it"
                yield Noticed(text, is_warning=True)
                continue
            if aside is not None:
                text = f"{place} is from an earlier build, and this build does not vouch for it: moved to {aside}"
                yield Noticed(text, is_warning=True)

    def finished(self, *, interrupted: bool, is_what_if: bool) -> Finished:
        """Save the notes and return the last event of the build."""
        for _, own in groupby(self.board.tickets, key=lambda ticket: ticket.variant.name):
            tickets = list(own)
            variant = tickets[0].variant
            unfinished = _unfinished(tickets, self._heads[variant.name], is_what_if=is_what_if)
            self._lookup.heads.keep(variant.subject, self._notes[variant.name], unfinished)
            if unfinished is not None and unfinished.keeps_earlier:
                self._lookup.store.drop_snapshots()  # an up-to-date build has to note that it passed
        self._lookup.heads.save()
        code = Exit.INTERRUPTED if interrupted else Exit.worst(self._exits)
        states = {ticket.ended.state for ticket in self.board.tickets if ticket.ended is not None}
        state: BuildState = "built" if "built" in states else "up to date"
        if code in (Exit.USAGE, Exit.FAILED, Exit.JUDGED):
            state = "failed"
        elif interrupted:
            state = "interrupted"
        elif "waiting" in states:
            state = "waiting"
        chronicle.note(self._lookup, self.board.tickets, self._before, state=state)
        return Finished(state, round(time.monotonic() - self._started, 3), code, dict(self._packages))

    def _note(self, ticket: Ticket, *, passed: bool) -> None:
        if ticket.key is not None:
            before = self._heads[ticket.variant.name].jobs.get(ticket.job.name)
            self._notes[ticket.variant.name][ticket.job.name] = job_note(
                ticket.job, ticket.digest, before, ticket.record if passed else None
            )


def _unfinished(tickets: Sequence[Ticket], head: Head, *, is_what_if: bool) -> Unfinished | None:
    """Return why the jobs of a variant did not give all results; None if all have passed. `head` is the build before.

    A build that stops early because of `--to`, of another recipe than the build before, has no results of later jobs.
    """
    keys = {each.job.name: each.digest for each in tickets if each.record is not None and each.key is not None}
    states = {None if ticket.ended is None else ticket.ended.state for ticket in tickets}
    if states <= {"cached", "built", "reproduced"}:
        is_same = keys.items() <= head.newest.items() and tickets[0].variant.subject.fields == head.recipe
        if is_same or any(ticket.job.traits.delivers for ticket in tickets):
            return None
        return Unfinished(f"ends with {tickets[-1].job.name}", keeps_earlier=is_what_if, jobs=keys)
    ended = [ticket.ended for ticket in tickets if ticket.ended is not None]
    failed = next((each for each in ended if each.error is not None), None)
    away = next((each.waits_for for each in ended if each.waits_for is not None), None)
    if failed is not None and failed.error is not None:
        why = f"failed in {failed.job}: {redaction.redacted(failed.error.what)}"
    elif away is not None:
        why = f"waits for {away}"
    else:
        left = next((ticket.job.name for ticket in tickets if ticket.record is None), "its end")
        why = f"stopped before {left}"
    return Unfinished(why, keeps_earlier=is_what_if or away is None or failed is not None, jobs=keys)


def _replayed(error: JudgementError, record: Record) -> JudgementError:
    """Return the error of a judgement about a stored report, with the time of the measurement and how to repeat it."""
    moment = datetime.fromtimestamp(record.made_at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    again = f"--force {step_of(record.job)} measures again"
    fact = f"replayed: measured at {moment}, and not measured again, because nothing changed that could change it"
    hint = error.hint if "--force " in error.hint else "; ".join(filter(None, (error.hint, again)))
    return JudgementError(error.what, (*error.facts, fact), hint)


def _judge(ticket: Ticket, record: Record) -> None:
    """Compare a job's report with the recipe's bounds. Raises UserError for a missed bound."""
    from engine import feasibility
    from engine.builder import reports
    from engine.feasibility.facts import ModelFacts

    step = ticket.job.step
    report = reports.read(type(step), record)
    step.judge(report)
    if isinstance(report, ModelFacts):
        feasibility.check_model(ticket.variant.loaded, report)
