"""The end of a job: its report is judged, its package handed over, its artifact pushed, and its event written."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from engine.builder.job import read_report, step_of
from engine.builder.lookup import Lookup
from engine.builder.states import Ticket
from engine.builder.trace.call_sites import OURS
from engine.builder.trace.gaps import gaps_of, refuse_gaps
from engine.errors import FieldError, JudgementError, PrecisionError, StepError, UserError
from engine.events import Arrival, Ended, Gap, JobState
from engine.store.materialize import materialize
from engine.store.record import Record


@dataclass(frozen=True)
class Ending:
    """How a job came to its end, before its result is judged."""

    ticket: Ticket
    state: JobState
    record: Record | None = None
    seconds: float = 0.0
    error: UserError | None = None
    arrival: Arrival | None = None


def event_of(ending: Ending, lookup: Lookup, *, is_new: bool, out: Path) -> Ended:
    """Return the event of a job's end; a job with a record fails where the recipe does not allow its result.

    `is_new` says whether this build has made the record. The job's package goes to the folder `out`.
    """
    ticket, record, error = ending.ticket, ending.record, ending.error
    gaps: tuple[Gap, ...] = ()
    measured_at, seconds = None, ending.seconds
    if record is not None:
        try:
            gaps = _accept(ticket, record, lookup, out)
        except JudgementError as judged:
            error = _explained(ticket, judged)
            if not is_new:
                error, measured_at, seconds = _replayed(error, record), record.made_at, 0.0
        except UserError as refused:
            error = refused
    elif isinstance(error, FieldError):
        error = ticket.variant.loaded.error(error.what, *error.path, facts=error.facts, hint=error.hint)
    waits_for = ticket.waits_for if ending.state == "waiting" and error is None else None
    return Ended(
        ticket.variant.name,
        ticket.job.name,
        ending.state if error is None else "failed",
        seconds=round(seconds, 3),
        key=None if ticket.key is None else str(ticket.digest),
        artifact=None if record is None else str(record.artifact),
        path=None if record is None else lookup.store.artifact_path(record.artifact),
        waits_for=None if waits_for is None else str(waits_for),
        advice="" if waits_for is None else lookup.advice(waits_for),
        error=error,
        gaps=gaps,
        arrival=ending.arrival if error is None else None,
        measured_at=measured_at,
    )


def without_record(ticket: Ticket) -> StepError:
    """Return the error about a job without a record in a build that runs no jobs."""
    return StepError(
        f"there is no record of {ticket.job.name!r} of {ticket.variant.name}",
        [f"key: {ticket.digest}", "nothing is built here: records come from the store and its remote only"],
        "build the recipe where its jobs can run, with the same remote; or push what was built: `recipe cache push`",
    )


def _accept(ticket: Ticket, record: Record, lookup: Lookup, out: Path) -> tuple[Gap, ...]:
    """Judge a record, and hand its artifact over; return what its job read without a row, if the step is not ours.

    Raises UserError for a record that the recipe, its lock or its bounds do not allow.
    """
    traits = ticket.job.traits
    gaps = gaps_of(record)
    lookup.accept(ticket.job, record)
    if ticket.job.hermetic:
        refuse_gaps(ticket.job.name, gaps)
    if traits.reads_report and not lookup.rows.is_judged(ticket.job, record):
        _judge(ticket, record)
    if traits.delivers:
        materialize(lookup.store, record, out / ticket.variant.name)
    if lookup.store.tier is not None:
        earlier = [each.record for each in ticket.before if each.record is not None]
        lookup.store.tier.push_new(record, earlier=earlier)
    return () if traits.kind.startswith(f"{OURS}.") else gaps


def _judge(ticket: Ticket, record: Record) -> None:
    """Compare a job's report with the recipe's bounds. Raises UserError for a missed bound."""
    from engine import feasibility
    from engine.feasibility.facts import ModelFacts

    step = ticket.job.step
    report = read_report(type(step), record)
    step.judge(report)
    if isinstance(report, ModelFacts):
        feasibility.check_model(ticket.variant.loaded, report)


def _explained(ticket: Ticket, error: JudgementError) -> JudgementError:
    """Return an error about a precision with the reasons in the reports of the jobs before; any other as it is."""
    from engine.reporting import TypedReport

    if not isinstance(error, PrecisionError):
        return error
    facts = list(error.facts)
    for each in ticket.before:
        report = None if each.record is None else read_report(type(each.job.step), each.record)
        facts += report.reasons() if isinstance(report, TypedReport) else []
    return PrecisionError(error.what, facts, error.hint)


def _replayed(error: JudgementError, record: Record) -> JudgementError:
    """Return the error of a judgement about a stored report, with the time of the measurement and how to repeat it."""
    moment = datetime.fromtimestamp(record.made_at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    again = f"--force {step_of(record.job)} measures again"
    fact = f"replayed: measured at {moment}, and not measured again, because nothing changed that could change it"
    hint = error.hint if "--force " in error.hint else "; ".join(filter(None, (error.hint, again)))
    return type(error)(error.what, (*error.facts, fact), hint)
