"""Build packages: run the jobs whose results are not in the store yet."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from engine.commands import amounts, options
from engine.errors import Exit, UserError

if TYPE_CHECKING:
    from engine.api import Session
    from engine.builder.findings import Finding
    from engine.events import Event
    from engine.report import BuildReport

_NOT_REPEATABLE = ("force", "remake", "refresh", "dry_run")
"""Options that make a repeated command build again; a build with such an option keeps no snapshot."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `recipe build`."""
    options.add_recipes(parser)
    parser.add_argument("--to", metavar="STEP", action="append", default=[], help="build no further than this step")
    parser.add_argument("-j", "--jobs", metavar="N", type=amounts.count, help="at most N jobs at a time")
    options.add_refresh(parser)
    parser.add_argument("--locked", action="store_true", help="build only what the recipe's lock says, else exit 2")
    options.add_frozen(parser)
    parser.add_argument(
        "--force", metavar="STEP", action="append", default=[], help="build this step though it is cached"
    )
    parser.add_argument(
        "--remake",
        metavar="STEP",
        action="append",
        default=[],
        help="run this cached step again and compare the bytes (`all`: every reproducible step); exit 1 if they differ",
    )
    parser.add_argument(
        "--keep-going", action="store_true", help="build what does not depend on a failed job or a wrong recipe"
    )
    parser.add_argument("--allow-waiting", action="store_true", help="exit 0 though jobs wait for hardware")
    parser.add_argument(
        "--paranoid",
        action="store_true",
        help="read every source, stored file and package, whatever its times say",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="say what would be built and what it costs, and build nothing"
    )
    parser.add_argument(
        "-o", "--output", metavar="DIR", type=Path, help="where packages go (default: the project's build/)"
    )
    options.add_json(parser)


def run(arguments: argparse.Namespace) -> Exit:
    """Build, and report the progress to a terminal, a log or a program."""
    began_ns = time.time_ns()
    try:
        resumed = _resume(arguments)
        if resumed is not None:
            return resumed
        from engine import api

        session = api.session(arguments.recipes, keep_going=arguments.keep_going, **options.reading(arguments))
    except UserError as error:
        if arguments.json:
            _print_refusal(error)
        raise
    if arguments.dry_run:
        return _dry_run(session, arguments.jobs, as_json=arguments.json)
    events: list[Event] = []
    report = report_for(json=arguments.json, many=len(session.variants) > 1)
    with report:

        def on_event(event: Event) -> None:
            events.append(event)
            report.on_event(event)

        try:
            finished = session.build(
                out=arguments.output,
                parallel=arguments.jobs,
                force=arguments.force,
                remake=arguments.remake,
                keep_going=arguments.keep_going,
                allow_waiting=arguments.allow_waiting,
                on_event=on_event,
            )
        except UserError as error:
            if arguments.json:
                _print_refusal(error)
            raise
    from engine.report import plain, table

    summaries = {each.variant.name: (each, table.tables([each])) for each in session.summaries()}
    report.finish(plain.data(finished, "".join(text for _, text in summaries.values())))
    if not any(getattr(arguments, name) for name in _NOT_REPEATABLE):
        from engine.report import replay

        replay.keep(arguments.words[1:], session, events, summaries, began_ns=began_ns)
    return finished.exit


def _resume(arguments: argparse.Namespace) -> Exit | None:
    """Build what reads the changed sources, and return the exit code; None if more than sources has changed."""
    if arguments.changes is None:
        return None
    from engine.report import early

    return early.build(arguments, arguments.changes, reading=options.reading(arguments), report_for=report_for)


def report_for(*, json: bool, many: bool) -> BuildReport:
    """Return the object that prints a build's events: as lines of JSON, as a view on a terminal, or as plain lines."""
    if json:
        from engine.report.json_lines import JsonReport

        return JsonReport()
    if sys.stderr.isatty() and os.environ.get("TERM") != "dumb" and not os.environ.get("CI"):
        from engine.report.live import LiveReport

        return LiveReport(many=many)
    from engine.report.plain import PlainReport

    return PlainReport(many=many)


def _dry_run(session: Session, parallel: int | None, *, as_json: bool) -> Exit:
    from engine.builder.costs import total
    from engine.builder.executors import slots
    from engine.report import costs, grid

    findings = session.findings()
    whole = total(findings, parallel or slots.default())
    words = {"cached": "cached", "stale": "would build", "new": "would build", "unknown": "may build"}
    if as_json:
        jobs = [
            {
                "recipe": finding.job.recipe,
                "job": finding.job.name,
                "state": words[finding.state],
                "cost": costs.fields_of_job(finding),
            }
            for finding in findings
        ]
        print(json.dumps({"jobs": jobs, "cost": costs.fields_of_build(whole)}, ensure_ascii=False, indent=1))
    else:
        grid.show([(words[each.state], each.job.recipe, each.job.name, _cost(each)) for each in findings])
    if whole is not None and not as_json:
        print(costs.of_build(whole))
    session.refusals.refuse(len(session.selection.paths))
    return Exit.OK


def _cost(finding: Finding) -> str:
    from engine.report import costs

    return "" if finding.state == "cached" else costs.of_job(finding)


def _print_refusal(error: UserError) -> None:
    end = {
        "event": "build",
        "state": "failed",
        "seconds": 0.0,
        "exit": int(error.exit),
        "packages": {},
        "error": error.fields(),
    }
    print(json.dumps(end, ensure_ascii=False))
