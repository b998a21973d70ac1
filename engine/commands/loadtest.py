"""Put a load on a running server: closed and open loop, a sweep of loads, percentiles, throughput, errors."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from engine.commands import amounts, query
from engine.commands.options import add_json
from engine.errors import Exit, StepError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from engine.client.client import Client
    from engine.client.entry import Entry
    from engine.client.figures import LoadFigures
    from engine.client.load import Point

_MOST_ERRORS = 0.01
_COLUMN_WIDTH = 8
"""Characters: each row is printed when its point is measured, before the numbers of the next rows are known."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    query.add_server(parser)
    query.add_questions(parser)
    load = parser.add_argument_group("the load")
    load.add_argument("--concurrency", metavar="N,...",
                      help="closed loop: so many callers, each asks again when it is answered: 1,8,32, or 1:32:2x "
                      "(doubled), or 4:16:4 (default: 1)")  # fmt: skip
    load.add_argument("--rate", metavar="R,...",
                      help="open loop: so many requests a second, answered or not. A latency counts from the planned "
                      "start: a slow server cannot hide its queue")  # fmt: skip
    load.add_argument("--arrivals", choices=("poisson", "constant"), default="poisson",
                      help="how they are spread: as independent callers come (default), or evenly")  # fmt: skip
    load.add_argument("--duration", metavar="SECONDS", type=amounts.seconds, default=5.0,
                      help="how long each load is measured (default: %(default)g)")  # fmt: skip
    load.add_argument("--warm-up", metavar="SECONDS", type=amounts.seconds, default=1.0,
                      help="how long it is put on before (default: %(default)g)")  # fmt: skip
    load.add_argument("--batch", metavar="N", type=amounts.positive, default=1, help="rows a request (default: 1)")
    load.add_argument("--seed", metavar="N", type=int, default=0, help="of the arrivals (default: 0)")
    load.add_argument("--processes", metavar="N", type=amounts.positive,
                      help="processes that make the load (default: one for every four CPUs)")  # fmt: skip
    load.add_argument("--max-errors", metavar="SHARE", type=_share, default=_MOST_ERRORS,
                      help="the share of requests that may fail (default: %(default)g)")  # fmt: skip
    load.add_argument("--with", dest="by", choices=("auto", "perf_analyzer", "own"), default="auto",
                      help="who makes the load: auto (default) is perf_analyzer for closed loops where it can run, "
                      "else own; its latencies of an open loop do not count from the planned start")  # fmt: skip
    load.add_argument("--perf-analyzer", metavar="FILE", help="where it is (default: on the PATH)")
    add_json(parser)
    parser.epilog = (
        "exit codes: 0 measured, 1 the server is not there, or more requests failed than may, 2 the command line is "
        "wrong. Example: recipe loadtest grpc://127.0.0.1:8001 --text 'A fine day.' --concurrency 1,8,32"
    )


def run(arguments: argparse.Namespace) -> Exit:
    """Measure point after point, and print a row for each as it is done."""
    from engine.client.client import Client

    points = _points(arguments)
    with Client(arguments.url, timeout=arguments.timeout) as client:
        entry = client.choose(arguments.model)
        if entry.decoupled:
            raise UsageError(
                f"{entry.name} answers in pieces: a load test is about whole answers",
                hint="choose another with --model",
            )
        measured = _print(entry, _measured(client, entry, points, arguments), arguments)
    _judge(measured, arguments.max_errors)
    return Exit.OK


def _points(arguments: argparse.Namespace) -> list[Point]:
    from engine.client import arrivals
    from engine.client.load import Point

    if arguments.concurrency and arguments.rate:
        raise UsageError("--concurrency is a closed loop and --rate an open one", hint="measure one after the other")
    if arguments.rate:
        return [Point(rate=rate) for rate in arrivals.rates(arguments.rate)]
    return [Point(concurrency=callers) for callers in arrivals.concurrencies(arguments.concurrency or "1")]


def _measured(
    client: Client, entry: Entry, points: list[Point], arguments: argparse.Namespace
) -> Iterator[LoadFigures]:
    from engine.client import encoded, load, perf_analyzer

    asked = query.questions(entry, arguments, each=arguments.batch)
    client.infer(entry, asked[0].arrays)  # what the server does not take is told once, in its own words
    settings = load.Settings(
        arguments.duration, arguments.warm_up, arguments.timeout, arguments.arrivals, arguments.seed,
        count_tokens=entry.generates and any(output.name == encoded.TOKENS for output in entry.outputs),
    )  # fmt: skip
    program, named = _program(points, arguments)
    if program is not None:
        for point in points:
            yield perf_analyzer.put(client, entry, asked, program=program, named=named, point=point, settings=settings)
        return
    requests = [encoded.request(client.address, entry, each.arrays) for each in asked]
    count = max(load.processes_here(point, arguments.processes) for point in points)
    protocol = client.address.protocol or "http"
    with load.Generators(count, protocol, count_tokens=settings.count_tokens) as generators:
        for point in points:
            yield generators.put(client, entry, requests, point, settings)


def _program(points: list[Point], arguments: argparse.Namespace) -> tuple[Path | None, str]:
    """Return perf_analyzer and its version where it is used. Raises StepError where it must be and cannot."""
    from engine.client import perf_analyzer

    wanted = arguments.by == "perf_analyzer" or arguments.perf_analyzer is not None
    if arguments.by == "own" or (not wanted and points[0].rate):
        return None, ""
    program, said = perf_analyzer.find(arguments.perf_analyzer)
    if program is None and wanted:
        raise StepError(said, hint=perf_analyzer.hint(said))
    if program is None and "PATH" not in said:
        print(f"measured by recipe's own clients: {said}", file=sys.stderr)
    return program, said


def _print(entry: Entry, measured: Iterator[LoadFigures], arguments: argparse.Namespace) -> list[LoadFigures]:
    """Print each point when it is measured; as JSON, a line a point."""
    import json

    from engine.client import load_table
    from engine.report import grid

    every: list[LoadFigures] = []
    columns: list[grid.Column] = []
    for number, figures in enumerate(measured):
        every.append(figures)
        if arguments.json:
            print(json.dumps({"model": entry.name, **figures.to_json()}, ensure_ascii=False), flush=True)
            continue
        if number == 0:
            print(f"{entry.name} at {arguments.url}, latencies in ms, measured by {figures.by}")
            titles = load_table.titles(figures)
            columns = [grid.Column(right=True, width=max(_COLUMN_WIDTH, len(title))) for title in titles]
            print(*grid.lines([titles], columns, indent=2))
        print(*grid.lines([load_table.row(figures, entry=entry.name)], columns, indent=2), flush=True)
        for note in load_table.notes(figures):
            print(f"{'':>8}{note}", flush=True)
    return every


def _judge(measured: list[LoadFigures], most: float) -> None:
    """Raise StepError where more requests failed than may."""
    broken = [figures for figures in measured if figures.errors.share > most or not figures.requests]
    if broken:
        worst = max(broken, key=lambda figures: figures.errors.share)
        raise StepError(
            f"{worst.errors.count} of {worst.requests} requests failed",
            [f"{count} x {message}" for message, count in worst.errors.messages.items()],
            f"more than --max-errors {most:g} of them",
        )


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no share from 0 to 1")
    return share
