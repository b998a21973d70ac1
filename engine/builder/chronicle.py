"""Chronicle: at the end of a build, note for each variant which jobs ran, why, and which figures came of it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import groupby

from engine.builder import reports
from engine.builder.lookup import Lookup
from engine.builder.tickets import Ticket
from engine.builder.variant import UnreadRecipe
from engine.errors import UserError
from engine.events import Ended
from engine.key import Change, changes, input_row
from engine.store import history
from engine.store.heads import Head
from engine.store.history import HeadlineFigures, JobRun, PastBuild
from engine.text import redaction

_RAN = ("built", "reproduced", "failed")
_REPLAYED = "replayed: the latencies were measured in an earlier build"
_WORST_FIRST = ("failed", "interrupted", "waiting")


def note(lookup: Lookup, tickets: Iterable[Ticket], before: Mapping[str, tuple[Head, str]], *, state: str) -> None:
    """Add the build to the history of each variant in which a job ran, or whose jobs have other keys than before.

    `before` are the last builds before this one, as `Heads.before` returns them, by the name of the variant; `state` is
    the state of the whole build. The first build of a variant is added, too.
    """
    for name, own in groupby(tickets, key=lambda ticket: ticket.variant.name):
        every, (head, other) = list(own), before[name]
        if other or any(_ran(ticket) or _is_other(ticket, head) for ticket in every):
            _note(lookup, every, head, other, state=state)


def _note(lookup: Lookup, tickets: list[Ticket], head: Head, other: str, *, state: str) -> None:
    states = {each.ended.state for each in tickets if each.ended is not None} | {state} & {"interrupted"}
    build = PastBuild(
        at=round(time.time(), 3),
        name=tickets[0].variant.name,
        state=next((each for each in _WORST_FIRST if each in states), "built"),
        jobs={each.job.name: each.digest for each in tickets if each.record is not None and each.key is not None},
        runs=tuple(_run(lookup, each, each.ended, head) for each in tickets if each.ended is not None and _ran(each)),
        figures=_figures(lookup, tickets),
        compared_with=other,
    )
    history.add(lookup.store.notes, tickets[0].variant.subject, build)


def _ran(ticket: Ticket) -> bool:
    return ticket.ended is not None and ticket.ended.state in _RAN


def _is_other(ticket: Ticket, head: Head) -> bool:
    """Say whether a job that was found has another key than in the last build."""
    last = head.jobs.get(ticket.job.name)
    return ticket.record is not None and (last is None or last.key != ticket.digest)


def _run(lookup: Lookup, ticket: Ticket, ended: Ended, head: Head) -> JobRun:
    return JobRun(
        job=ticket.job.name,
        state="failed" if ended.state == "failed" else "built",
        seconds=ended.seconds,
        changes=_changes(lookup, ticket, head),
        error=redaction.redacted(ended.error.what) if isinstance(ended.error, UserError) else "",
    )


def _changes(lookup: Lookup, ticket: Ticket, head: Head) -> tuple[Change, ...]:
    """Return the rows in which a key differs from the job's last key.

    The outputs of earlier jobs are left out, because the rows of these jobs say more.
    """
    last = head.jobs.get(ticket.job.name)
    before = lookup.store.read(last.key) if last is not None and last.key is not None else None
    if before is None or ticket.key is None:
        return ()
    outputs = set(map(input_row, ticket.job.needs))
    return tuple(each for each in changes(before.key, ticket.key) if each.row not in outputs)


def _figures(lookup: Lookup, tickets: list[Ticket]) -> HeadlineFigures:
    """Return the figures of a build.

    If a build takes its jobs from a stored plan, and no job with a typed report ran, then the steps are not imported,
    and the measurements are those of the build before.
    """
    if not any(_ran(each) and each.job.traits.reads_report for each in tickets):
        earlier = history.of(lookup.store.notes, tickets[0].variant.subject)
        if earlier and isinstance(tickets[0].variant.origin, UnreadRecipe):
            return _replayed(replace(earlier[-1].figures, size=None))
    from engine.builder import headline
    from engine.builder.summary import Summary
    from engine.step import Section

    read = {each.job.name: reports.current(type(each.job.step), each.record) for each in tickets if each.record}
    records = {name: record for name, record in read.items() if record is not None}
    figures = headline.of(Summary(tickets[0].variant, records))
    measured = any(_ran(each) for each in tickets if each.job.step.section is Section.BENCH)
    return figures if measured else _replayed(figures)


def _replayed(figures: HeadlineFigures) -> HeadlineFigures:
    """Return the figures of a build that measured no latency, with a warning beside those of an earlier build."""
    if not figures.latencies:
        return figures
    return replace(figures, warnings=tuple(dict.fromkeys((*figures.warnings, _REPLAYED))))
