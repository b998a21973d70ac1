"""Build packages: run the jobs whose results are not in the store yet."""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import engine
from engine.builder import plan_cache
from engine.builder.options import HERE, Options, refuse_elsewhere
from engine.builder.plan_cache import ChangedBuild
from engine.commands import amounts, options
from engine.errors import Exit, UsageError, UserError
from engine.system import interrupts

if TYPE_CHECKING:
    from engine.api import Session
    from engine.events import Event
    from engine.report.results import BuildReport


_BYTECODE = "__pycache__"
"""The folder in which Python keeps the compiled modules of a folder."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `recipe build`."""
    options.add_recipes(parser)
    parser.add_argument("--to", metavar="STEP", action="append", default=[], help="build no further than this step")
    parser.add_argument(
        "--on",
        metavar="WHERE",
        default=HERE,
        help="where jobs run: `local` for this machine (default), or a Ray cluster: ray://HOST:PORT or auto",
    )
    parser.add_argument("-j", "--jobs", metavar="N", type=amounts.count, help="at most N jobs at a time")
    options.add_refresh(parser)
    parser.add_argument("--locked", action="store_true", help="build only what the recipe's lock says, else exit 2")
    options.add_frozen(parser)
    parser.add_argument(
        "--force",
        metavar="STEP",
        action="append",
        default=[],
        help="build this step though it is cached, here or on a cluster",
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
    """Build, and report the progress. An interruption after the last event changes nothing: the build has ended."""
    if arguments.watch:
        from engine.commands import build_modes

        build_modes.build_again(arguments.words[1:], arguments.recipes[0])
    interrupts.install()
    # From here on, nothing that the build reads should change: not even a folder in which Python keeps its modules.
    if _make_bytecode_folders(str(Path(engine.__file__).parent)):
        from engine.store.stat_cache import TICK_NS

        time.sleep(TICK_NS / 1e9)
    began_ns = time.time_ns()
    reports: list[BuildReport] = []
    try:
        with _refusing(as_json=arguments.json):
            build_options = _options_of(arguments)
            build: Session | ChangedBuild | None = plan_cache.changed_build(arguments.changes)
            if build is None:
                from engine import api

                keep_going = arguments.keep_going
                build = api.session(arguments.recipes, keep_going=keep_going, **options.reading(arguments))
        if (arguments.dry_run or arguments.waiting) and not isinstance(build, ChangedBuild):
            from engine.commands import build_modes

            show = build_modes.show_costs if arguments.dry_run else build_modes.show_waiting
            return show(build, arguments)
        return _run(build, build_options, arguments, reports, began_ns=began_ns)
    except KeyboardInterrupt:
        if arguments.json and not (arguments.dry_run or arguments.waiting):
            _print_interruption(reports, seconds=(time.time_ns() - began_ns) / 1e9)
        raise


def _make_bytecode_folders(package: str) -> bool:
    """Make the folders in which Python will keep the compiled modules of a package; return whether one is new.

    `package` is the package's folder. Python makes such a folder at the first import of a module beside it, and so
    changes the times of the module's folder: a build that reads these times would see a change while it runs. Where
    Python keeps no compiled modules there, or nobody may write, nothing is made.
    """
    if sys.dont_write_bytecode or sys.pycache_prefix is not None:
        return False
    is_new = False
    for folder, inner, files in os.walk(package):
        has_own, has_modules = _BYTECODE in inner, any(file.endswith(".py") for file in files)
        inner[:] = [name for name in inner if name != _BYTECODE]
        if has_modules and not has_own:
            with contextlib.suppress(OSError):
                os.mkdir(os.path.join(folder, _BYTECODE))
                is_new = True
    return is_new


@contextlib.contextmanager
def _refusing(*, as_json: bool) -> Iterator[None]:
    """Context manager: a UserError that is raised inside is, for programs, also the last event."""
    try:
        yield
    except UserError as error:
        if as_json:
            end = {"event": "build", "state": "failed", "seconds": 0.0, "exit": int(error.exit), "packages": {}}
            print(json.dumps({**end, "error": error.fields()}, ensure_ascii=False))
        raise


def _options_of(arguments: argparse.Namespace) -> Options:
    """Return what the command line asks of the build. Raises UsageError for options that do not go together."""
    if arguments.timeout is not None and not arguments.wait:
        raise UsageError("--timeout limits --wait", hint="add --wait, or leave --timeout out")
    refuse_elsewhere(arguments.on, {"--dry-run": arguments.dry_run, "--waiting": arguments.waiting})
    patience = math.inf if arguments.timeout is None else arguments.timeout
    return Options(
        out=arguments.output,
        parallel=arguments.jobs,
        on=arguments.on,
        force=frozenset(arguments.force),
        remake=frozenset(arguments.remake),
        keep_going=arguments.keep_going,
        allow_waiting=arguments.allow_waiting,
        wait=patience if arguments.wait else None,
    )


def _run(
    build: Session | ChangedBuild,
    build_options: Options,
    arguments: argparse.Namespace,
    reports: list[BuildReport],
    *,
    began_ns: int,
) -> Exit:
    """Build, and print and keep the results. Raises UserError before anything is built."""
    from engine.events import Ended
    from engine.report import report_for, results, snapshots

    if isinstance(build, ChangedBuild):
        _print_others(build, arguments)
    report = report_for(
        json=arguments.json,
        variants=len(build.plan.entries if isinstance(build, ChangedBuild) else build.variants),
        quiet=arguments.quiet,
        verbose=arguments.verbose,
        parallel=build_options.parallel or build.parallel,
    )
    reports.append(report)
    events: list[Event] = []

    def on_event(event: Event) -> None:
        events.append(event)
        report.on_event(event)

    with report, _refusing(as_json=arguments.json):
        finished = build.build(build_options, on_event)
    waits = build_options.wait is not None and finished.state == "waiting"
    repeats_work = build_options.force or build_options.remake or arguments.refresh or waits
    tables = _tables(build)
    if os.environ.get("GITLAB_CI"):
        from engine.report import ci

        ci.write_junit(events, {each.name: str(each.loaded.path) for each in build.variants})
    ran = {event.recipe for event in events if isinstance(event, Ended) and event.state == "built"}
    report.finish(results.results(finished, tables, built=ran))
    if build_options.on == HERE and not repeats_work:  # any other build keeps no snapshot
        with contextlib.suppress(KeyboardInterrupt), interrupts.raised():  # the next build then takes longer
            snapshots.keep(arguments.words[1:], build, events, tables, began_ns=began_ns)
    return finished.exit


def _print_others(build: ChangedBuild, arguments: argparse.Namespace) -> None:
    from engine.report import entries, results

    if arguments.json:
        sys.stdout.write(entries.json(build.others, build.plan.notices))
    elif not arguments.quiet:
        folded = len(build.plan.entries) > results.MANY and not arguments.verbose
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


def _print_interruption(reports: Sequence[BuildReport], *, seconds: float) -> None:
    """Print the last event of a build that was interrupted before its loop, or for the second time."""
    from engine.events import Finished
    from engine.report.json_lines import JsonReport

    report = reports[-1] if reports else JsonReport()
    if isinstance(report, JsonReport) and not report.is_finished:
        report.on_event(Finished("interrupted", round(seconds, 3), Exit.INTERRUPTED, {}))
