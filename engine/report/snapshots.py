"""Keeping: at the end of a build, write the snapshot and the plan cache from the entries of all variants."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine import snapshot
from engine.builder.plan_cache import ChangedBuild, Entry, fields_of, path_beside
from engine.errors import Exit, UserError
from engine.events import Ended, Event, Finished, Noticed, Planned
from engine.report import entries, json_lines, plain, results
from engine.store.materialize import is_in_place
from engine.store.record import Record
from engine.store.stat_cache import TICK_NS
from engine.system import watched
from engine.system.file_systems import tells_changes

if TYPE_CHECKING:
    from engine.api import Session
    from engine.system.watched import Row

_CHANGE_TIME = 4
"""The index of the change time in a stat row."""
_TOKEN_BYTES = 16
"""The length of the random bytes that a snapshot and its plan have in common."""


@dataclass(frozen=True)
class _Outcome:
    """A build that has ended, with what it leaves for the next one."""

    build: Session | ChangedBuild
    finished: Finished
    notices: Sequence[str]
    """What every build prints about the recipes."""
    records: Mapping[str, Mapping[str, Record]]
    """The records of jobs, by the names of the variant and the job."""
    entries: Mapping[str, Entry]
    """The entries of all variants."""
    new: Mapping[str, Entry]
    """The entries of the variants that were looked at, without the parts for a plan."""
    fixed: frozenset[str]
    """The files whose change changes the plan, as far as this build has planned."""


def keep(
    words: Sequence[str],
    build: Session | ChangedBuild,
    events: Sequence[Event],
    tables: Mapping[str, str],
    *,
    began_ns: int,
) -> None:
    """Write the snapshot and the plan cache of a build with the arguments `words` that ended without a failure.

    `tables` are those of all variants, by name. `began_ns` is the time at which the build began to read its inputs, in
    nanoseconds.

    Nothing is kept where a file that the build looked at changed after that time, or where a file system may not report
    changes. Files that the build did not look at keep the stat rows of the last build: if one has changed since, the
    next build sees it.
    """
    finished, store = events[-1], build.lookup.store
    path = snapshot.path_of(words)
    if path is None or not isinstance(finished, Finished) or finished.exit not in (Exit.OK, Exit.WAITING):
        return
    if finished.state == "waiting" and (store.tier is not None or isinstance(build, ChangedBuild)):
        return  # the next build asks the remote for what other machines have made since
    with contextlib.suppress(OSError, UserError, ValueError):  # without a snapshot the next run only takes longer
        outcome = _outcome(build, events, finished, tables)
        compared = _compared(words, outcome, began_ns=began_ns)
        if compared is not None:
            token = {"token": os.urandom(_TOKEN_BYTES)}
            if plan := _plan(outcome):
                place = path_beside(path)
                store.write(Path(place), snapshot.sealed(place, {"plan": plan, **token}))
            content = {**compared, **_printed(outcome, tables), **token}
            store.write(Path(path), snapshot.sealed(path, content))
    store.leave()


def _outcome(
    build: Session | ChangedBuild, events: Sequence[Event], finished: Finished, tables: Mapping[str, str]
) -> _Outcome:
    last = build.plan.entries if isinstance(build, ChangedBuild) else {}
    many = len(last or build.variants) > 1
    plans = {event.recipe: event for event in events if isinstance(event, Planned)}
    ends = {(event.recipe, event.job): event for event in events if isinstance(event, Ended)}
    records: dict[str, dict[str, Record]] = {}
    new: dict[str, Entry] = {}
    for variant in build.variants:
        name, package = variant.name, finished.packages.get(variant.name)
        own = [ends[name, job.name] for job in variant.jobs]
        read = {each.job: build.lookup.store.read(each.key) for each in own if each.key and each.artifact}
        records[name] = {job: record for job, record in read.items() if record is not None}
        new[name] = {
            **last.get(name, {}),
            **entries.files(variant, build.lookup, records[name].values(), package),
            **entries.printed(plans[name], own, tables.get(name, ""), many=many),
            "delivered": None if package is None else str(package),
        }
    if isinstance(build, ChangedBuild):
        return _Outcome(build, finished, build.plan.notices, records, {**last, **new}, new, frozenset())
    from engine.report import plan_files

    notices = [event.text for event in events if isinstance(event, Noticed) and event.lasting]
    every = (record for own in records.values() for record in own.values())
    return _Outcome(build, finished, notices, records, new, new, frozenset(plan_files.fixed(build, every)))


def _compared(words: Sequence[str], outcome: _Outcome, *, began_ns: int) -> dict[str, Any] | None:
    """Return what the snapshot of the build compares; None for a build of which no snapshot may be kept."""
    build = outcome.build
    inputs = {name for each in outcome.new.values() for name in each["inputs"]}
    written = {name for each in outcome.new.values() for name in each["outputs"]}
    if not isinstance(build, ChangedBuild):
        from engine.report import plan_files

        if plan_files.changed_meanwhile():
            return None
        inputs |= outcome.fixed
        written |= plan_files.folders(build, waits=outcome.finished.state == "waiting")
    disks = _one_of_each_disk(inputs | written)
    if not all(map(tells_changes, disks)):
        return None
    time.sleep(TICK_NS / 1e9)  # from now on, a change of an output changes its time stamps
    around = {} if isinstance(build, ChangedBuild) else plan_files.around(build, disks)
    fed = {name: watched.row_of(name) for name in sorted(inputs)}
    given = {name: watched.row_of(name) for name in sorted(written - inputs)}
    newest_ns = max((row[_CHANGE_TIME] for row in fed.values() if row is not None), default=0)
    if around is None or None in given.values() or newest_ns > began_ns - TICK_NS or not _are_whole(outcome):
        return None
    if build.lookup.sources.changed_file() is not None:
        return None
    rows = {name: row for name, row in (fed | given).items() if row is not None}
    if isinstance(build, ChangedBuild):
        return _renewed(build, outcome.new, rows) if len(rows) == len(fed) + len(given) else None
    absent = [name for name, row in fed.items() if row is None]
    return {**snapshot.stated(words, rows=rows, absent=absent, **around), "exit": int(outcome.finished.exit)}


def _renewed(build: ChangedBuild, new: Mapping[str, Entry], rows: Mapping[str, Row]) -> dict[str, Any] | None:
    """Return what the last snapshot compares, with the stat rows of what was looked at; None for other inputs."""
    last, compared = build.plan.entries, build.changes.snapshot
    if any(each["inputs"] != last[name]["inputs"] for name, each in new.items()):
        return None
    still = {name for each in {**last, **new}.values() for name in each["outputs"]}
    gone = {name for each in new for name in last[each]["outputs"]} - still
    left = {name: row for name, row in watched.unpacked(*compared["watched"]).items() if name not in gone}
    return {**compared, "watched": watched.packed({**left, **rows})}


def _plan(outcome: _Outcome) -> dict[str, Any] | None:
    """Return the content of the plan cache; None with a lock, or a job that has no record or waits for hardware."""
    build, records = outcome.build, outcome.records
    if outcome.finished.exit is not Exit.OK or any(len(records[each.name]) < len(each.jobs) for each in build.variants):
        return None
    if any(build.lookup.waits_for(job) for each in build.variants for job in each.jobs):
        return None
    if not isinstance(build, ChangedBuild) and build.locks:
        return None
    own = {each.name: fields_of(each, records[each.name], build.lookup) for each in build.variants}
    planned = {name: {**outcome.new[name], **fields} for name, fields in own.items()}
    if isinstance(build, ChangedBuild):
        return {**vars(build.plan), "entries": {**build.plan.entries, **planned}}
    from engine.builder import planning_reads
    from engine.report import plan_files

    sources = {name for each in planned.values() for name in each["inputs"]} - outcome.fixed - planning_reads.names()
    return {
        "entries": planned,
        "sources": frozenset(filter(os.path.isfile, sources)),
        "notices": outcome.notices,
        **plan_files.whole_plan(build),
    }


def _printed(outcome: _Outcome, tables: Mapping[str, str]) -> dict[str, str]:
    """Return the texts of a snapshot, in which a NUL character stands for the seconds of a later run."""
    every = outcome.entries
    waits = outcome.finished.state == "waiting"
    finished = replace(outcome.finished, state="waiting" if waits else "up to date", seconds=0.0)
    data = results.results(finished, tables)
    end = plain.last_line(finished.state, "\0", int(finished.exit)) + "\n"
    last = json_lines.line(finished).replace('"seconds": 0.0', '"seconds": \0', 1)
    return {
        "talk": entries.talk(every, outcome.notices, folded=False) + end,
        "brief_talk": entries.talk(every, outcome.notices, folded=len(every) > results.MANY) + end,
        "json": f"{entries.json(every, outcome.notices)}{last}\n",
        "data": data.whole,
        "brief_data": data.brief,
        "packages": data.packages,
    }


def _are_whole(outcome: _Outcome) -> bool:
    """Tell whether all artifacts and packages are whole; files that changed a moment ago are read again."""
    store = outcome.build.lookup.store
    every = {record.digest: record for own in outcome.records.values() for record in own.values()}
    if not all(store.is_on_remote(record) or store.artifacts.is_whole(record) for record in every.values()):
        return False
    for variant in outcome.build.variants:
        own, package = outcome.records[variant.name], outcome.finished.packages.get(variant.name)
        delivered = next((own[job.name] for job in variant.jobs if job.traits.delivers and job.name in own), None)
        if package is not None and (delivered is None or not is_in_place(store, delivered, package)):
            return False
    return True


def _one_of_each_disk(names: Iterable[str]) -> list[str]:
    """Return one of the files on each disk. A file that is absent is on none: it has no time stamps."""
    by_disk: dict[int, str] = {}
    for name in names:
        with contextlib.suppress(OSError, ValueError):
            by_disk[os.stat(name).st_dev] = name
    return list(by_disk.values())
