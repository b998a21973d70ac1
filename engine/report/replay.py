"""Replay: keep a snapshot after a build, with the text that the next run prints if nothing has changed."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from engine import plugins
from engine.api import Session
from engine.builder import planning_reads, registry
from engine.builder.summary import Summary
from engine.digest import Digest
from engine.errors import Exit, UserError
from engine.events import Awaits, Ended, Event, Finished, Moved, Noticed, Refused, RunsElsewhere, Started
from engine.machine import tools
from engine.recipe.project import project_of
from engine.recipe.ways import mark_of
from engine.report import folding, json_lines, outputs, plain, plan_storing, results
from engine.snapshot import TOKEN_BYTES, Candidate, path_of
from engine.store import revocations
from engine.store.file_systems import mount_folder, mount_number, tells_changes
from engine.store.record import Record
from engine.store.stat_cache import TICK_NS

if TYPE_CHECKING:
    from engine.recipe.ways import Mark


def keep(
    argv: Sequence[str],
    session: Session,
    events: Sequence[Event],
    summaries: Mapping[str, tuple[Summary, str]],
    *,
    began_ns: int,
) -> None:
    """Keep a snapshot of a build that ended without a failure; the snapshot holds the text that a no-op build prints.

    `summaries` maps the name of each variant to the variant's summary and table. `began_ns` is the time at which the
    build first read an input, in nanoseconds. No snapshot is kept where an input of the build changed after `began_ns`,
    or where a file system may not report changes.
    """
    finished = events[-1]
    if not isinstance(finished, Finished) or finished.exit not in (Exit.OK, Exit.WAITING) or _changed_meanwhile():
        return
    if finished.state == "waiting" and session.lookup.store.tier is not None:
        return  # the next build asks the remote for what other machines have made since
    with contextlib.suppress(OSError, UserError, ValueError):  # without a snapshot the next run only takes longer
        _keep(argv, session, events, finished, summaries=summaries, began_ns=began_ns)
    session.lookup.store.leave()


def _keep(
    argv: Sequence[str],
    session: Session,
    events: Sequence[Event],
    finished: Finished,
    *,
    summaries: Mapping[str, tuple[Summary, str]],
    began_ns: int,
) -> None:
    fixed = frozenset(plan_storing.fixed(session))
    inputs = {*fixed, *_read(session)}
    written = {*_folders(session, finished), *_outputs(session, summaries, finished)}
    if _uses_remote(session, summaries):
        inputs.add(str(revocations.folder() / revocations.LIST))  # a key that is revoked later ends the snapshot
    one_of_each_disk = _one_of_each_disk(inputs | written)
    if not all(map(tells_changes, one_of_each_disk)):
        return
    time.sleep(TICK_NS / 1e9)  # from now on, a change of an output changes its time stamps
    notes = {str(session.lookup.heads.path(variant.subject)) for variant in session.variants}
    way: dict[str, Mark] = {}
    for variant in reversed(session.variants):
        way |= variant.loaded.way  # of two marks of one place, the one that was read first counts
    way |= {folder: mark_of(folder) for folder in map(mount_folder, one_of_each_disk) if folder is not None}
    roots = _roots(session)
    if roots is None:
        return
    mounts = dict(filter(None, map(mount_number, one_of_each_disk)))
    candidate = Candidate(inputs=inputs, outputs=written, notes=notes, way=way, roots=roots, mounts=mounts)
    if candidate.newest_ns() > began_ns - TICK_NS or not _is_whole(session, summaries, finished):
        return
    if session.lookup.sources.changed_file() is not None:
        return
    last = _repeated(finished)
    repeated = [event for event in map(_again, events[:-1]) if event is not None]
    many = len(session.variants) > 1
    talk = [line for event in repeated for line in plain.lines(event, many=many)]
    talk.append(_last_line(last))
    lines = [json_lines.line(event) for event in repeated]
    lines.append(json_lines.line(last).replace('"seconds": 0.0', '"seconds": \0', 1))
    token = os.urandom(TOKEN_BYTES)
    whole = "".join(f"{line}\n" for line in talk)
    printed = results.results(finished, {name: table for name, (_, table) in summaries.items()})
    path = path_of(argv)
    if path is not None:
        plan_storing.store_plan(path, token, session, finished, summaries, fixed=fixed)
    candidate.keep(
        argv,
        token=token,
        write=lambda path, data: session.lookup.store.write(Path(path), data),
        variables=None if plugins.every() else session.lookup.watched().variables,  # plugins may read any variable
        environment=planning_reads.environment(),
        code=int(finished.exit),
        texts={
            "talk": whole,
            "brief_talk": _brief_talk(repeated, last) if len(session.variants) > folding.MANY else whole,
            **printed.texts(),
        },
        json="".join(f"{line}\n" for line in lines),
    )


def _last_line(last: Finished) -> str:
    return plain.last_line(last.state, "\0", int(last.exit))


def _brief_talk(repeated: Sequence[Event], last: Finished) -> str:
    """Return the lines of a no-op build of many variants: one line for all jobs that need no attention."""
    folded = folding.Folded()
    rest = [event for event in repeated if not (isinstance(event, Ended) and folded.take(event))]
    lines = [line for event in rest for line in plain.lines(event, many=True)]
    return "".join(f"{line}\n" for line in (*lines, *folded.lines(), _last_line(last)))


def _uses_remote(session: Session, summaries: Mapping[str, tuple[Summary, str]]) -> bool:
    records = (record for summary, _ in summaries.values() for record in summary.records.values())
    return session.lookup.store.tier is not None or any(record.origin for record in records)


def _roots(session: Session) -> dict[str, str] | None:
    """Return the root of the project of one recipe in each folder, because the recipes in a folder have one project.

    Returns None if a root has changed while the recipes were read.
    """
    recipes = {path.parent: path for path in session.selection.paths}  # abstract recipes, too
    roots = {folder: project_of(path) for folder, path in recipes.items()}
    if any(roots[variant.loaded.path.parent] != variant.loaded.project for variant in session.variants):
        return None
    return {str(recipes[folder]): str(root) for folder, root in roots.items()}


def _changed_meanwhile() -> bool:
    """Tell whether tools, steps or plugins changed during the build; after such a change no snapshot may be kept.

    A snapshot would hold the stat rows of the changed files, although the build used the files before the change.
    """
    return tools.changed() or registry.changed() or plugins.changed()


def _is_whole(session: Session, summaries: Mapping[str, tuple[Summary, str]], finished: Finished) -> bool:
    """Tell whether all artifacts and packages are whole; files that changed a moment ago are read again."""
    store = session.lookup.store
    checked: dict[Digest, Record] = {}
    for name, (summary, _) in summaries.items():
        new = {record.digest: record for record in summary.records.values() if record.digest not in checked}
        if not outputs.are_whole(store, new.values(), summary.delivered, finished.packages.get(name)):
            return False
        checked |= new
    return True


def _repeated(finished: Finished) -> Finished:
    """Return the last event of a run in which nothing has to be built."""
    return replace(finished, state="waiting" if finished.state == "waiting" else "up to date", seconds=0.0)


def _again(event: Event) -> Event | None:
    """Return the event to report in place of `event` where nothing has to be built; None where `event` is left out."""
    match event:
        case Ended(state="built") | Ended(state="cached"):
            return replace(event, state="cached", seconds=0.0, arrival=None)
        case Noticed(lasting=True):
            return event
        case Started() | Noticed() | Refused() | RunsElsewhere() | Awaits() | Moved():
            return None
        case _:
            return event


def _one_of_each_disk(names: Iterable[str]) -> list[str]:
    """Return one of the files on each disk. A file that is absent is on none: it has no time stamps."""
    by_disk: dict[int, str] = {}
    for name in names:
        with contextlib.suppress(OSError, ValueError):
            by_disk[os.stat(name).st_dev] = name
    return list(by_disk.values())


def _read(session: Session) -> Iterator[str]:
    """Yield the files and folders that the build read, beside those of `plan_storing.fixed`."""
    yield from session.lookup.watched().paths
    yield from planning_reads.foreign(session.lookup.store.root)


def _outputs(session: Session, summaries: Mapping[str, tuple[Summary, str]], finished: Finished) -> Iterator[str]:
    """Yield the files that the build wrote or used: records, artifacts, packages."""
    for name, (summary, _) in summaries.items():
        yield from outputs.files(session.lookup.store, summary.records.values(), finished.packages.get(name))


def _folders(session: Session, finished: Finished) -> Iterator[str]:
    """Yield the folders of Python's import path and of steps, whose changes a snapshot watches.

    Folders of the import path count as outputs, because a build may create the folder `build/` in them. Folders of
    steps count as outputs, because Python writes compiled files into them. A snapshot names folders of the import path
    to notice that a package was installed, and folders of steps to notice that a step was added.
    """
    yield from (entry for entry in sys.path if Path(entry).is_dir())
    yield from registry.folders()
    if finished.state == "waiting":  # another machine may add records to this folder
        yield str(session.lookup.store.layout.records)
