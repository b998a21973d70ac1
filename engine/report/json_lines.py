"""Events as lines of JSON, one object in each line, for programs. The names of the JSON fields are stable."""

from __future__ import annotations

import json
from dataclasses import asdict

from engine.builder.job import step_of
from engine.events import Awaits, Ended, Event, Finished, Moved, Noticed, Planned, Refused, RunsElsewhere, Started
from engine.report.results import BuildReport, Results, shown
from engine.system import interrupts

VERSION = 1
"""The version of the format of the JSON lines, which the first line about each recipe holds (docs/stability.md)."""


class JsonReport(BuildReport):
    """Prints each event to standard output at once."""

    def __init__(self) -> None:
        self.is_finished = False
        """Whether the last event of the build is printed."""

    def on_event(self, event: Event) -> None:
        """Print the event's line, whole in any case."""
        with interrupts.deferred():
            print(line(event), flush=True)
            self.is_finished = isinstance(event, Finished)

    def finish(self, results: Results) -> None:
        """Print no results, because programs read the measured numbers with `recipe show --json`."""


def line(event: Event) -> str:
    """Return an event as one line of JSON, without the newline."""
    return json.dumps(_fields(event), ensure_ascii=False)


def _fields(event: Event) -> dict[str, object]:
    match event:
        case Noticed():
            return {"event": "note", "text": event.text}
        case Refused():
            return {"event": "refused", "path": event.path, "error": event.error.fields()}
        case Planned():
            jobs = [{"job": name, "step": step_of(name), "needs": list(needs)} for name, needs in event.jobs]
            return {"event": "plan", "version": VERSION, "recipe": event.recipe, "jobs": jobs}
        case Started() | RunsElsewhere() | Awaits() | Moved():
            return _under_way(event)
        case Ended():
            return _ended(event)
        case Finished():
            return {
                "event": "build",
                "state": event.state,
                "seconds": event.seconds,
                "exit": int(event.exit),
                "packages": {name: shown(path) for name, path in event.packages.items()},
            }


def _under_way(event: Started | RunsElsewhere | Awaits | Moved) -> dict[str, object]:
    match event:
        case Started():
            node = {"node": event.node} if event.node else {}
            return {"event": "start", "recipe": event.recipe, "job": event.job, **node}
        case RunsElsewhere():
            by = {"pid": event.pid, "host": event.host, "since": event.since, "text": event.builder}
            return {"event": "wait", "recipe": event.recipe, "job": event.job, "by": by}
        case Awaits():
            waits = {"for": event.waits_for, "advice": event.advice}
            return {"event": "await", "recipe": event.recipe, "job": event.job, **waits}
        case Moved():
            moved = {"jobs": list(event.jobs), "bytes": event.done, "of": event.total}
            return {"event": "transfer", "direction": event.direction, "remote": event.remote, **moved}


def _ended(event: Ended) -> dict[str, object]:
    fields: dict[str, object] = {
        "event": "end",
        "recipe": event.recipe,
        "job": event.job,
        "state": event.state,
        "seconds": event.seconds,
    }
    if event.artifact is not None:
        fields |= {"key": event.key, "artifact": event.artifact, "path": str(event.path)}
    if event.waits_for is not None:
        fields |= {"for": event.waits_for, "advice": event.advice}
    if event.arrival is not None:
        fields["arrived"] = {"after": event.arrival.seconds, "from": event.arrival.machine}
    if event.gaps:
        fields["not_covered"] = [asdict(gap) for gap in event.gaps]
    if event.measured_at is not None:
        fields["measured_at"] = event.measured_at
    if event.error is not None:
        fields["error"] = event.error.fields()
    return fields
