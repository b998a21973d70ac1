"""A build's events -> what the next, up-to-date run prints, kept as a snapshot."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import engine
from engine import code, machine, registry, snapshot
from engine.api import Session
from engine.errors import Exit
from engine.events import Ended, Event, Finished
from engine.report import json_lines, plain
from engine.summary import Summary

_GPU_DRIVER = ("/proc/driver/nvidia/version", "/dev/nvidia0")
"""Where a GPU shows on Linux: when it comes or goes, a waiting job is looked at again."""


def keep(
    argv: Sequence[str], session: Session, events: Sequence[Event], summaries: Sequence[Summary], began_ns: int
) -> None:
    """Keep the answer of the next run, where this build came to its end."""
    finished = events[-1]
    if not isinstance(finished, Finished) or finished.exit not in (Exit.OK, Exit.WAITING) or _changed_meanwhile():
        return
    repeated = [again for event in events if (again := _again(event)) is not None]
    many = len(session.variants) > 1
    talk = [line for event in repeated[:-1] for line in plain.lines(event, many=many)]
    last = repeated[-1]
    if not isinstance(last, Finished):
        return
    talk.append(plain.last_line(last.state, "\0", int(last.exit)))
    lines = [json_lines.line(event) for event in repeated[:-1]]
    lines.append(json_lines.line(last).replace('"seconds": 0.0', '"seconds": \0', 1))
    snapshot.keep(
        argv,
        inputs=_inputs(session),
        outputs=_outputs(session, summaries, finished),
        links=[(name, target) for variant in session.variants for name, target in variant.loaded.links.items()],
        began_ns=began_ns,
        code=int(finished.exit),
        talk="".join(f"{line}\n" for line in talk),
        data=plain.data(finished, summaries),
        json="".join(f"{line}\n" for line in lines),
    )


def _changed_meanwhile() -> bool:
    """Say whether tools or steps came while we ran: their folders' rows would already be the new ones."""
    return machine.tools_changed() or registry.changed()


def _again(event: Event) -> Event | None:
    """Return what an event will be when nothing has to be built; None for one that will not come."""
    match event:
        case Ended(state="built"):
            return replace(event, state="cached", seconds=0.0)
        case Finished():
            return replace(event, state="waiting" if event.state == "waiting" else "up to date", seconds=0.0)
        case _ if type(event).__name__ == "Started":
            return None
        case _:
            return event


def _inputs(session: Session) -> Iterator[str]:
    """Yield all files and folders that the plan and its keys were made from."""
    for variant in session.variants:
        yield from (str(path) for path in variant.loaded.files)
        for job in variant.jobs:
            yield from (str(path) for path in machine.metadata_files(job.step.tools_used()))
    yield from (str(path) for path in session.lookup.watched())
    for step in registry.steps().values():
        yield from (str(path) for path in code.of_module(step.__module__).files)
    yield from (str(path) for path in Path(engine.__file__).parent.rglob("*.py"))
    yield from _GPU_DRIVER


def _outputs(session: Session, summaries: Sequence[Summary], finished: Finished) -> Iterator[str]:
    """Yield what the build wrote, or may have changed by the way: records, artifacts, packages, folders of code.

    The import path is among them, since `build/` is made beside recipes that lie on it; and the folders of steps,
    in which Python keeps what it compiled. A package that is installed later, or a step that is added, changes them.
    """
    yield from (entry for entry in sys.path if Path(entry).is_dir())
    yield from registry.folders()
    store = session.lookup.store
    for summary in summaries:
        for record in summary.records.values():
            yield str(store.record_path(record.digest))
            yield from (str(store.artifact_path(record.artifact) / name) for name in record.files)
    for place in finished.packages.values():
        yield str(place)
        yield from (str(path) for path in place.rglob("*"))
