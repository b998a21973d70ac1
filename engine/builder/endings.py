"""The end of a job: its report is judged, its package handed over, its artifact pushed, and its event written."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from engine.builder.job import step_of
from engine.builder.lookup import Lookup
from engine.builder.states import States, Ticket
from engine.builder.trace import declaring
from engine.builder.trace.places import OURS
from engine.errors import FieldError, JudgementError, PrecisionError, StepError, UserError
from engine.events import Ended, Gap
from engine.store.materialize import materialize
from engine.store.record import Record


def end(ticket: Ticket, ended: Ended, states: States, lookup: Lookup, *, out: Path) -> Ended:
    """End a job, and return the whole event; `ended` says how the job came to its end.

    A job with a record fails where the recipe does not allow its result. Its package goes to the folder `out`.
    """
    record, error = ticket.record, ended.error
    if record is not None:
        try:
            ended = replace(ended, gaps=_accept(ticket, record, lookup, out))
        except JudgementError as judged:
            error = _explained(ticket, judged)
            leader = states.leader(ticket.digest)
            if leader is None or not leader.has_run or leader.stored is not None:
                error = _replayed(error, record)
                ended = replace(ended, measured_at=record.made_at, seconds=0.0)
        except UserError as refused:
            error = refused
        artifact, path = str(record.artifact), lookup.store.artifact_path(record.artifact)
        ended = replace(ended, artifact=artifact, path=path)
    elif isinstance(error, FieldError):
        error = ticket.variant.loaded.error(error.what, *error.path, facts=error.facts, hint=error.hint)
    if error is not None:
        ended = replace(ended, state="failed", error=error, arrival=None)
    if ended.state == "waiting" and ticket.away is not None:
        ended = replace(ended, waits_for=str(ticket.away), advice=lookup.advice(ticket.away))
    key = str(ticket.digest) if ticket.key is not None else None
    ended = replace(ended, key=key, seconds=round(ended.seconds, 3))
    states.end(ticket, ended)
    return ended


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
    gaps = declaring.gaps_of(record)
    lookup.accept(ticket.job, record)
    if ticket.job.hermetic:
        declaring.refuse(ticket.job.name, gaps)
    if traits.reads_report and not lookup.rows.is_judged(ticket.job, record):
        _judge(ticket, record)
    if traits.delivers:
        materialize(lookup.store, record, out / ticket.variant.name)
    if lookup.store.tier is not None:
        earlier = [each.record for each in _before(ticket) if each.record is not None]
        lookup.store.tier.push_new(record, earlier=earlier)
    return () if traits.kind.startswith(f"{OURS}.") else gaps


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


def _before(ticket: Ticket) -> list[Ticket]:
    """Return the tickets of all jobs before a job, not only of those whose outputs the job reads."""
    before = list(ticket.earlier)
    for each in before:  # grows meanwhile
        before += [other for other in each.earlier if other not in before]
    return before


def _explained(ticket: Ticket, error: JudgementError) -> JudgementError:
    """Return an error about a precision with the reasons in the reports of the jobs before; any other as it is."""
    from engine.builder import reports
    from engine.reporting import TypedReport

    if not isinstance(error, PrecisionError):
        return error
    facts = list(error.facts)
    for each in _before(ticket):
        report = None if each.record is None else reports.read(type(each.job.step), each.record)
        facts += report.reasons() if isinstance(report, TypedReport) else []
    return JudgementError(error.what, facts, error.hint)


def _replayed(error: JudgementError, record: Record) -> JudgementError:
    """Return the error of a judgement about a stored report, with the time of the measurement and how to repeat it."""
    moment = datetime.fromtimestamp(record.made_at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    again = f"--force {step_of(record.job)} measures again"
    fact = f"replayed: measured at {moment}, and not measured again, because nothing changed that could change it"
    hint = error.hint if "--force " in error.hint else "; ".join(filter(None, (error.hint, again)))
    return JudgementError(error.what, (*error.facts, fact), hint)
