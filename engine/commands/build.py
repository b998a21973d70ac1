"""Build packages: run the jobs whose results are not in the store yet."""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import engine
from engine.builder import plan_cache
from engine.builder.plan_cache import ChangedBuild
from engine.commands import amounts, options
from engine.errors import Exit, LockError, UsageError, UserError
from engine.recipe.project import jobs_of
from engine.system import bytecode, interrupts

if TYPE_CHECKING:
    from engine.api import Session
    from engine.builder.findings import Finding
    from engine.builder.selection import Reading
    from engine.events import Event, Finished
    from engine.report import BuildReport
    from engine.snapshot import ChangedFiles

_HERE = "local"
"""Where jobs run by default: on this machine."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `recipe build`."""
    options.add_recipes(parser)
    parser.add_argument("--to", metavar="STEP", action="append", default=[], help="build no further than this step")
    parser.add_argument(
        "--on",
        metavar="WHERE",
        default=_HERE,
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


@dataclass(frozen=True)
class BuildRequest:
    """What the command line asks of a build."""

    words: Sequence[str]
    recipes: Sequence[Path]
    reading: Reading
    changes: ChangedFiles | None
    """The files that changed since the last build, if its snapshot knows all else."""
    out: Path | None
    on: str
    parallel: int | None
    force: Sequence[str]
    remake: Sequence[str]
    keep_going: bool
    allow_waiting: bool
    wait: float | None
    json: bool
    quiet: bool
    verbose: bool
    plans_only: str
    """The option of a command that builds nothing: `--dry-run` or `--waiting`; else empty."""

    @property
    def is_repeatable(self) -> bool:
        """Whether the same command has nothing to do when it is repeated; any other build keeps no snapshot."""
        repeats = (self.force, self.remake, self.reading.get("refresh"), self.plans_only, self.on != _HERE)
        return not any(repeats)


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
    try:
        with _refusing(as_json=arguments.json):
            request = _request(arguments)
        return _run(request, reports, began_ns=began_ns)
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


def _request(arguments: argparse.Namespace) -> BuildRequest:
    """Return what the command line asks. Raises UserError for options that do not go together."""
    if arguments.timeout is not None and not arguments.wait:
        raise UsageError("--timeout limits --wait", hint="add --wait, or leave --timeout out")
    patience = math.inf if arguments.timeout is None else arguments.timeout
    parallel = arguments.jobs
    if parallel is None and arguments.on == _HERE:
        parallel = jobs_of(str(arguments.recipes[0]))
    return BuildRequest(
        words=arguments.words[1:],
        recipes=arguments.recipes,
        reading=options.reading(arguments),
        changes=arguments.changes,
        out=arguments.output,
        on=arguments.on,
        parallel=parallel,
        force=arguments.force,
        remake=arguments.remake,
        keep_going=arguments.keep_going,
        allow_waiting=arguments.allow_waiting,
        wait=patience if arguments.wait else None,
        json=arguments.json,
        quiet=arguments.quiet,
        verbose=arguments.verbose,
        plans_only="--dry-run" if arguments.dry_run else "--waiting" if arguments.waiting else "",
    )


def _run(request: BuildRequest, reports: list[BuildReport], *, began_ns: int) -> Exit:
    with _refusing(as_json=request.json):
        build = plan_cache.changed_build(request.changes) or _planned(request)
    if not isinstance(build, ChangedBuild) and request.plans_only:
        show = _dry_run if request.plans_only == "--dry-run" else _waiting
        return show(build, request)
    last = build.plan if isinstance(build, ChangedBuild) else None
    count = len(build.variants) if last is None else len(last.entries)
    if isinstance(build, ChangedBuild):
        _print_others(build, request)
    report = report_for(
        json=request.json,
        variants=count,
        quiet=request.quiet,
        verbose=request.verbose,
        parallel=request.parallel,
    )
    reports.append(report)
    events: list[Event] = []

    def on_event(event: Event) -> None:
        events.append(event)
        report.on_event(event)

    with report, _refusing(as_json=request.json):
        finished = _built(build, request, on_event)
    from engine.events import Ended
    from engine.report import results

    tables = _tables(build)
    _write_junit(events, build)
    ran = {event.recipe for event in events if isinstance(event, Ended) and event.state == "built"}
    report.finish(results.results(finished, tables, built=ran))
    gave_up = request.wait is not None and finished.state == "waiting"  # repeated, the command waits again
    if request.is_repeatable and not gave_up:
        from engine.report import keeping

        with contextlib.suppress(KeyboardInterrupt), interrupts.raised():  # the next build then takes longer
            keeping.keep(request.words, build, events, tables, began_ns=began_ns)
    return finished.exit


@contextlib.contextmanager
def _refusing(*, as_json: bool) -> Iterator[None]:
    """Context manager: a UserError that is raised inside is, for programs, also the last event."""
    try:
        yield
    except UserError as error:
        if as_json:
            _print_refusal(error)
        raise


def _planned(request: BuildRequest) -> Session:
    """Return the session of a build with a new plan. Raises UserError."""
    from engine import api

    only = {each: request.plans_only == each for each in ("--dry-run", "--waiting")}
    api.refuse_on_cluster(request.on, only)
    return api.session(request.recipes, keep_going=request.keep_going, **request.reading)


def _built(build: Session | ChangedBuild, request: BuildRequest, on_event: Callable[[Event], None]) -> Finished:
    """Build, hand each event to `on_event`, and return the last one. Raises UserError before anything is built."""
    if isinstance(build, ChangedBuild):
        return build.build(
            out=request.out,
            parallel=request.parallel,
            keep_going=request.keep_going,
            allow_waiting=request.allow_waiting,
            wait=request.wait,
            on_event=on_event,
        )
    return build.build(
        out=request.out,
        parallel=request.parallel,
        force=request.force,
        remake=request.remake,
        keep_going=request.keep_going,
        allow_waiting=request.allow_waiting,
        wait=request.wait,
        on=request.on,
        on_event=on_event,
    )


def _print_others(build: ChangedBuild, request: BuildRequest) -> None:
    """Print the lines about the variants that are not built again."""
    from engine.report import entries, folding

    if request.json:
        sys.stdout.write(entries.json(build.others, build.plan.notices))
    elif not request.quiet:
        folded = len(build.plan.entries) > folding.MANY and not request.verbose
        sys.stderr.write(entries.talk(build.others, build.plan.notices, folded=folded))


def _tables(build: Session | ChangedBuild) -> dict[str, str]:
    """Return the table of each variant; "" for a variant without one. Tables are about reports that steps have."""
    last = build.plan.entries if isinstance(build, ChangedBuild) else {}
    tables = {name: each["table"] for name, each in last.items()}
    reporting = [each for each in build.variants if any(job.traits.reads_report for job in each.jobs)]
    if isinstance(build, ChangedBuild) and not reporting:
        return tables
    from engine.builder.summary import summarize
    from engine.report import table

    return tables | {each.name: table.tables([summarize(build.lookup, each)]) for each in build.variants}


def _write_junit(events: Sequence[Event], build: Session | ChangedBuild) -> None:
    """In GitLab's CI, write the jobs as test cases."""
    if os.environ.get("GITLAB_CI"):
        from engine.report import junit

        junit.write(events, {each.name: str(each.loaded.path) for each in build.variants})


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


def _dry_run(session: Session, request: BuildRequest) -> Exit:
    from engine.builder.costs import total, upgrade
    from engine.builder.executors import slots
    from engine.report import costs, grid

    findings = session.findings()
    upgraded = upgrade(findings)
    whole = total(findings, request.parallel or slots.default())
    words = {"cached": "cached", "stale": "would build", "new": "would build", "unknown": "may build"}
    if request.json:
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
    if whole is not None and not request.json:
        print(costs.of_build(whole))
    if upgraded is not None and not request.json:
        print(upgraded)
    session.refusals.refuse(len(session.selection.paths))
    for finding in findings:
        if isinstance(finding.error, LockError):
            raise finding.error
    return Exit.OK


def _waiting(session: Session, request: BuildRequest) -> Exit:
    from engine.report import matrix
    from engine.system import streams

    waiting = session.waiting()
    streams.write_last(f"{matrix.line(waiting)}\n" if request.json else matrix.text(waiting))
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
