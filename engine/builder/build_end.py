"""The end of a build: older packages leave `build/`, heads and history are written, and the last event is told."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from engine.builder.job import current_report
from engine.builder.lookup import Lookup
from engine.builder.options import Options
from engine.builder.states import PASSED, Ticket
from engine.builder.variant import UnreadRecipe
from engine.digest import Digest
from engine.errors import Exit, StoreError
from engine.events import BuildFailure, BuildState, Ended, Event, Finished, Noticed
from engine.key import Change, changes, input_row
from engine.store import file_lock, history
from engine.store.heads import Head, Unfinished, job_note
from engine.store.history import HeadlineFigures, JobRun, PastBuild
from engine.store.materialize import withdraw
from engine.store.store import Store
from engine.text import redaction

_RAN = ("built", "reproduced", "failed")
_REPLAYED = "replayed: the latencies were measured in an earlier build"
_WORST_FIRST = ("failed", "interrupted", "waiting")
_CONTRADICTED = "{} has another content than an earlier build read, although its size and its times are the same"
_NOT_VOUCHED = "is from an earlier build, and this build does not vouch for it"


def announce(
    events: Generator[Event, None, None],
    store: Store,
    on_event: Callable[[Event], None],
    whole: Callable[[Finished], Finished],
) -> Finished:
    """Hand all events on, each in the thread that waits, and return the last one.

    `whole` adds to the last event what the loop does not know.
    """
    if store.tier is not None:
        store.tier.watch(on_event)
    last: Finished | None = None
    # Closed here: where `on_event` raises, the traceback would keep the build and its workers.
    with contextlib.closing(events), file_lock.announcing(lambda text: on_event(Noticed(text))):
        for event in events:
            last = whole(event) if isinstance(event, Finished) else None
            on_event(last or event)
    if last is None:
        raise AssertionError("a build has ended without its last event")
    return last


def conclude(
    tickets: Sequence[Ticket],
    lookup: Lookup,
    before: Mapping[str, tuple[Head, str]],
    options: Options,
    *,
    began: float,
    interrupted: bool,
) -> Iterator[Noticed | Finished]:
    """Write the heads and the history of all variants; yield what is left to tell, and the last event of the build.

    `before` are the last builds before this one, as `Heads.before` returns them, by the name of the variant. `began` is
    the time at which the build began, from `time.monotonic`. A build that is interrupted waits for no remote and leaves
    all packages where they are.
    """
    if not interrupted:
        yield from _last_notices(lookup.store)
        if not (options.is_what_if or options.is_trial):
            yield from _withdrawn(tickets, options.place)
    if not options.is_trial:
        variants = [list(own) for _, own in groupby(tickets, key=lambda ticket: ticket.variant.name)]
        for own in variants:
            _keep_head(lookup, own, before[own[0].variant.name][0], is_what_if=options.is_what_if)
        lookup.heads.save()
        for own in variants:
            other = before[own[0].variant.name][1]
            if other or any(_ran(ticket) or _is_other(ticket) for ticket in own):
                _add_to_history(lookup, own, other, is_interrupted=interrupted)
    yield _finished(tickets, lookup.store, options, began=began, interrupted=interrupted)


def _last_notices(store: Store) -> Iterator[Noticed]:
    """Wait for the remote, and tell the user what came from there and went there.

    Files that changed under equal stat rows are named: no snapshot can be trusted then.
    """
    contradicted = store.contents.contradicted
    if contradicted:
        store.drop_snapshots()
    yield from (Noticed(_CONTRADICTED.format(path)) for path in contradicted)
    if store.tier is not None:
        store.tier.wait()
        store.tier.pulse()
        if line := store.tier.summary():
            yield Noticed(line)


def _withdrawn(tickets: Sequence[Ticket], out: Path) -> Iterator[Noticed]:
    """Move away each package of an earlier build that this build could not deliver again, and tell the user.

    The recipe at present does not vouch for such a package: a bound was missed, a job failed, or a job waits for
    hardware. A package is left in its place if its jobs were not reached.
    """
    for name, own in groupby(tickets, key=lambda ticket: ticket.variant.name):
        every = list(own)
        is_unbuilt = any(each.ended is not None and each.ended.state in ("failed", "waiting") for each in every)
        delivering = [each for each in every if each.job.traits.delivers]
        if not is_unbuilt or not delivering or any(map(_has_passed, delivering)):
            continue
        try:
            aside = withdraw(out / name)
        except StoreError as error:
            yield Noticed(f"{error.what}; it {_NOT_VOUCHED}", is_warning=True)
            continue
        if aside is not None:
            yield Noticed(f"{out / name} {_NOT_VOUCHED}: moved to {aside}", is_warning=True)


def _finished(
    tickets: Sequence[Ticket], store: Store, options: Options, *, began: float, interrupted: bool
) -> Finished:
    """Return the last event: the state, the exit code, the packages, and for callers in Python the failures."""
    failures = tuple(_failures(tickets, store))
    ends = {ticket.ended.state for ticket in tickets if ticket.ended is not None}
    codes = [each.error.exit for each in failures]
    codes += [Exit.WAITING] if "waiting" in ends and not options.allow_waiting else []
    code = Exit.INTERRUPTED if interrupted else Exit.worst(codes)
    state: BuildState = "built" if "built" in ends else "up to date"
    if code in (Exit.USAGE, Exit.FAILED, Exit.JUDGED):
        state = "failed"
    elif interrupted:
        state = "interrupted"
    elif "waiting" in ends:
        state = "waiting"
    delivered = [each.variant.name for each in tickets if each.job.traits.delivers and _has_passed(each)]
    packages = {name: options.place / name for name in delivered}
    return Finished(state, round(time.monotonic() - began, 3), code, packages, failures)


def _failures(tickets: Iterable[Ticket], store: Store) -> Iterator[BuildFailure]:
    """Yield each job that failed, with the reason and the log of its last run."""
    for ticket in tickets:
        if ticket.ended is not None and ticket.ended.error is not None:
            paths = [store.log_path(ticket.digest, failed=failed) for failed in (True, False)] if ticket.key else []
            log = next((path for path in paths if path.is_file()), None)
            yield BuildFailure(ticket.variant.name, ticket.job.name, ticket.job.step_name, ticket.ended.error, log)


def _has_passed(ticket: Ticket) -> bool:
    return ticket.ended is not None and ticket.ended.state in PASSED


def _ran(ticket: Ticket) -> bool:
    return ticket.ended is not None and ticket.ended.state in _RAN


def _is_other(ticket: Ticket) -> bool:
    """Say whether a job that was found has another key than in the last build."""
    return ticket.record is not None and (ticket.note is None or ticket.note.key != ticket.digest)


def _keys(tickets: Sequence[Ticket]) -> dict[str, Digest]:
    return {each.job.name: each.digest for each in tickets if each.record is not None}


def _keep_head(lookup: Lookup, tickets: Sequence[Ticket], head: Head, *, is_what_if: bool) -> None:
    """Write what is known of the jobs of a variant into its head; `head` is that of the build before."""
    noted = [each for each in tickets if each.record is not None or (each.has_run and each.stored is None)]
    notes = {each.job.name: job_note(each.job.needs, each.digest, each.note, each.record) for each in noted}
    unfinished = _unfinished(tickets, head, is_what_if=is_what_if)
    lookup.heads.keep(tickets[0].variant.subject, notes, unfinished)
    if unfinished is not None and unfinished.keeps_earlier:
        lookup.store.drop_snapshots()  # an up-to-date build has to note that it passed


def _unfinished(tickets: Sequence[Ticket], head: Head, *, is_what_if: bool) -> Unfinished | None:
    """Return why the jobs of a variant did not give all results; None if all have passed.

    A build that stops early because of `--to`, of another recipe than the build before, has no results of later jobs.
    """
    keys = _keys(tickets)
    if all(map(_has_passed, tickets)):
        is_same = keys.items() <= head.newest.items() and tickets[0].variant.subject.fields == head.recipe
        if is_same or any(ticket.job.traits.delivers for ticket in tickets):
            return None
        return Unfinished(f"ends with {tickets[-1].job.name}", keeps_earlier=is_what_if, jobs=keys)
    ended = [ticket.ended for ticket in tickets if ticket.ended is not None]
    failed = next(((each.job, each.error) for each in ended if each.error is not None), None)
    waits_for = next((each.waits_for for each in ended if each.waits_for is not None), None)
    if failed is not None:
        why = f"failed in {failed[0]}: {redaction.redacted(failed[1].what)}"
    elif waits_for is not None:
        why = f"waits for {waits_for}"
    else:
        left = next((ticket.job.name for ticket in tickets if ticket.record is None), "its end")
        why = f"stopped before {left}"
    return Unfinished(why, keeps_earlier=is_what_if or waits_for is None or failed is not None, jobs=keys)


def _add_to_history(lookup: Lookup, tickets: Sequence[Ticket], other: str, *, is_interrupted: bool) -> None:
    """Add the build to the history of a variant; `other` is the recipe that it is compared with, if that is another."""
    ended = [(ticket, ticket.ended) for ticket in tickets if ticket.ended is not None]
    states = {each.state for _, each in ended} | ({"interrupted"} if is_interrupted else set())
    build = PastBuild(
        at=round(time.time(), 3),
        name=tickets[0].variant.name,
        state=next((each for each in _WORST_FIRST if each in states), "built"),
        jobs=_keys(tickets),
        runs=tuple(_run(lookup, ticket, each) for ticket, each in ended if each.state in _RAN),
        figures=_figures(lookup, tickets),
        compared_with=other,
    )
    history.add(lookup.store.notes, tickets[0].variant.subject, build)


def _run(lookup: Lookup, ticket: Ticket, ended: Ended) -> JobRun:
    return JobRun(
        job=ticket.job.name,
        state="failed" if ended.state == "failed" else "built",
        seconds=ended.seconds,
        changes=_changes(lookup, ticket),
        error="" if ended.error is None else redaction.redacted(ended.error.what),
    )


def _changes(lookup: Lookup, ticket: Ticket) -> tuple[Change, ...]:
    """Return the rows in which a key differs from the job's last key.

    The outputs of earlier jobs are left out, because the rows of these jobs say more.
    """
    last = None if ticket.note is None else ticket.note.key
    before = None if last is None else lookup.store.read(last)
    if before is None or ticket.key is None:
        return ()
    outputs = set(map(input_row, ticket.job.needs))
    return tuple(each for each in changes(before.key, ticket.key) if each.row not in outputs)


def _figures(lookup: Lookup, tickets: Sequence[Ticket]) -> HeadlineFigures:
    """Return the figures of a build.

    If a build takes its jobs from a stored plan, and no job with a typed report ran, then the steps are not imported,
    and the measurements are those of the build before.
    """
    if not any(_ran(each) and each.job.traits.reads_report for each in tickets):
        earlier = history.of(lookup.store.notes, tickets[0].variant.subject)
        if earlier and isinstance(tickets[0].variant.origin, UnreadRecipe):
            return _replayed(replace(earlier[-1].figures, size=None))
    from engine.builder.summary import Summary
    from engine.step import Section

    read = {each.job.name: current_report(type(each.job.step), each.record) for each in tickets if each.record}
    records = {name: record for name, record in read.items() if record is not None}
    figures = Summary(tickets[0].variant, records).headline
    measured = any(_ran(each) for each in tickets if each.job.step.section is Section.BENCH)
    return figures if measured else _replayed(figures)


def _replayed(figures: HeadlineFigures) -> HeadlineFigures:
    """Return the figures of a build that measured no latency, with a warning beside those of an earlier build."""
    if not figures.latencies:
        return figures
    return replace(figures, warnings=tuple(dict.fromkeys((*figures.warnings, _REPLAYED))))
