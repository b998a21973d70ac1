"""Build packages: run the jobs whose results are not in the store yet."""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import engine
from engine.commands import amounts, options
from engine.errors import Exit, LockError, UsageError, UserError
from engine.recipe.project import jobs_of
from engine.system import bytecode, interrupts

if TYPE_CHECKING:
    from engine.api import Session
    from engine.builder.findings import Finding
    from engine.events import Event
    from engine.report import BuildReport

_NOT_REPEATABLE = ("force", "remake", "refresh", "dry_run", "is_elsewhere")
"""Options that make a repeated command build again; a build with such an option keeps no snapshot."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `recipe build`."""
    options.add_recipes(parser)
    parser.add_argument("--to", metavar="STEP", action="append", default=[], help="build no further than this step")
    parser.add_argument(
        "--on",
        metavar="WHERE",
        default="local",
        help="where jobs run: `local` for this machine (default), or a Ray cluster: ray://HOST:PORT or auto",
    )
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
    modes = parser.add_mutually_exclusive_group()
    modes.add_argument(
        "--wait",
        action="store_true",
        help="wait for the results of jobs that other machines build with the same store or remote",
    )
    modes.add_argument(
        "--dry-run", action="store_true", help="say what would be built and what it costs, and build nothing"
    )
    modes.add_argument(
        "--waiting",
        action="store_true",
        help="say what waits for other hardware, with the command to run there, and build nothing; with --json: a "
        "matrix for CI",
    )
    modes.add_argument(
        "--watch", action="store_true", help="build again whenever a file that the build reads changes; Ctrl-C ends"
    )
    parser.add_argument(
        "--timeout",
        metavar="TIME",
        type=amounts.duration,
        help="with --wait: for how long, as in 30m (default: no end)",
    )
    parser.add_argument(
        "-o", "--output", metavar="DIR", type=Path, help="where packages go (default: the project's build/)"
    )
    talk = parser.add_mutually_exclusive_group()
    talk.add_argument(
        "-q", "--quiet", action="store_true", help="print only errors, warnings and the packages' folders"
    )
    talk.add_argument(
        "-v", "--verbose", action="store_true", help="of many variants, print a line for each job, and every table"
    )
    options.add_json(parser)


def run(arguments: argparse.Namespace) -> Exit:
    """Build, and report the progress to a terminal, a log or a program.

    An interruption after the last event changes nothing: the build has ended.
    """
    if arguments.watch:
        from engine.commands import watching

        watching.build_again(arguments.words[1:], arguments.recipes[0])
    interrupts.install()
    began_ns = _began_ns()
    reports: list[BuildReport] = []

    def report_of(*, json: bool, variants: int) -> BuildReport:
        how = {"quiet": arguments.quiet, "verbose": arguments.verbose, "parallel": arguments.jobs}
        reports.append(report_for(json=json, variants=variants, **how))
        return reports[-1]

    try:
        return _run(arguments, report_of, began_ns=began_ns)
    except KeyboardInterrupt:
        if arguments.json and not (arguments.dry_run or arguments.waiting):
            _print_interruption(reports, seconds=(time.time_ns() - began_ns) / 1e9)
        raise


def _began_ns() -> int:
    """Return the time at which the build begins. From now on, nothing that the build reads should change."""
    if bytecode.make_folders(str(Path(engine.__file__).parent)):
        from engine.store.stat_cache import TICK_NS

        time.sleep(TICK_NS / 1e9)
    return time.time_ns()


def _run(arguments: argparse.Namespace, report_of: Callable[..., BuildReport], *, began_ns: int) -> Exit:
    arguments.wait = _patience(arguments)
    arguments.is_elsewhere = arguments.on != "local"
    try:
        arguments.jobs = _jobs(arguments)
        resumed = _resume(arguments, report_of)
        if resumed is not None:
            return resumed
        from engine import api

        api.refuse_on_cluster(arguments.on, {"--dry-run": arguments.dry_run, "--waiting": arguments.waiting})
        session = api.session(arguments.recipes, keep_going=arguments.keep_going, **options.reading(arguments))
    except UserError as error:
        if arguments.json:
            _print_refusal(error)
        raise
    if arguments.dry_run:
        return _dry_run(session, arguments.jobs, as_json=arguments.json)
    if arguments.waiting:
        return _waiting(session, as_json=arguments.json)
    events: list[Event] = []
    report = report_of(json=arguments.json, variants=len(session.variants))
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
                wait=arguments.wait,
                on=arguments.on,
                on_event=on_event,
            )
        except UserError as error:
            if arguments.json:
                _print_refusal(error)
            raise
    from engine.events import Ended
    from engine.report import results, table

    summaries = {each.variant.name: (each, table.tables([each])) for each in session.summaries()}
    _write_junit(events, session)
    ran = {event.recipe for event in events if isinstance(event, Ended) and event.state == "built"}
    report.finish(results.results(finished, {name: text for name, (_, text) in summaries.items()}, built=ran))
    gave_up = arguments.wait is not None and finished.state == "waiting"  # repeated, the command waits again
    if not gave_up and not any(getattr(arguments, name) for name in _NOT_REPEATABLE):
        from engine.report import replay

        with contextlib.suppress(KeyboardInterrupt), interrupts.raised():  # the next build then takes longer
            replay.keep(arguments.words[1:], session, events, summaries, began_ns=began_ns)
    return finished.exit


def _jobs(arguments: argparse.Namespace) -> int | None:
    """Return how many jobs run at once by the command line, else by `recipe.toml`. Raises UserError."""
    if arguments.jobs is not None or arguments.is_elsewhere:
        stated: int | None = arguments.jobs
        return stated
    return jobs_of(str(arguments.recipes[0]))


def _write_junit(events: Sequence[Event], session: Session) -> None:
    """In GitLab's CI, write the jobs as test cases."""
    if os.environ.get("GITLAB_CI"):
        from engine.report import junit

        junit.write(events, {each.name: str(each.loaded.path) for each in session.variants})


def _patience(arguments: argparse.Namespace) -> float | None:
    """Return for how many seconds the build waits for results of other machines; None if it does not wait.

    Raises UsageError for a time without `--wait`.
    """
    if arguments.timeout is not None and not arguments.wait:
        raise UsageError("--timeout limits --wait", hint="add --wait, or leave --timeout out")
    if not arguments.wait:
        return None
    return math.inf if arguments.timeout is None else arguments.timeout


def _resume(arguments: argparse.Namespace, report_of: Callable[..., BuildReport]) -> Exit | None:
    """Build what reads the changed sources, and return the exit code; None if more than sources has changed."""
    if arguments.changes is None:
        return None
    from engine.report import early

    return early.build(arguments, arguments.changes, reading=options.reading(arguments), report_for=report_of)


def report_for(
    *, json: bool, variants: int, quiet: bool = False, verbose: bool = False, parallel: int | None = None
) -> BuildReport:
    """Return the object that prints a build's events: as lines of JSON, as a view on a terminal, or as plain lines.

    Of a build with many `variants`, jobs that need no attention are counted, unless the build is `verbose`.
    """
    if json:
        from engine.report.json_lines import JsonReport

        return JsonReport()
    from engine.report import folding

    many, folded = variants > 1, variants > folding.MANY and not verbose
    if not quiet and sys.stderr.isatty() and os.environ.get("TERM") != "dumb" and not os.environ.get("CI"):
        from engine.report.live import LiveReport

        return LiveReport(many=many, folded=folded, parallel=parallel)
    from engine.report.plain import PlainReport

    return PlainReport(many=many, folded=folded, quiet=quiet)


def _dry_run(session: Session, parallel: int | None, *, as_json: bool) -> Exit:
    from engine.builder.costs import total, upgrade
    from engine.builder.executors import slots
    from engine.report import costs, grid

    findings = session.findings()
    upgraded = upgrade(findings)
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
        whole_fields = {"cost": costs.fields_of_build(whole), "upgrade": upgraded and upgraded.fields()}
        print(json.dumps({"jobs": jobs, **whole_fields}, ensure_ascii=False, indent=1))
    else:
        grid.show([(words[each.state], each.job.recipe, each.job.name, _cost(each)) for each in findings])
    if whole is not None and not as_json:
        print(costs.of_build(whole))
    if upgraded is not None and not as_json:
        print(upgraded)
    session.refusals.refuse(len(session.selection.paths))
    for finding in findings:
        if isinstance(finding.error, LockError):
            raise finding.error
    return Exit.OK


def _waiting(session: Session, *, as_json: bool) -> Exit:
    from engine.report import matrix
    from engine.system import streams

    waiting = session.waiting()
    streams.write_last(f"{matrix.line(waiting)}\n" if as_json else matrix.text(waiting))
    session.refusals.refuse(len(session.selection.paths))
    return Exit.OK


def _cost(finding: Finding) -> str:
    from engine.report import costs

    return "" if finding.state == "cached" else costs.of_job(finding)


def _print_interruption(reports: Sequence[BuildReport], *, seconds: float) -> None:
    """Print the last event of a build that was interrupted before its loop, or for the second time."""
    from engine.events import Finished
    from engine.report.json_lines import JsonReport

    report = reports[-1] if reports else JsonReport()
    if isinstance(report, JsonReport) and not report.is_finished:
        report.on_event(Finished("interrupted", round(seconds, 3), Exit.INTERRUPTED, {}))


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
