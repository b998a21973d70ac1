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
    from engine.client.figures import LoadFigures
    from engine.client.load import Point
    from engine.client.model_metadata import ModelMetadata

_MOST_ERRORS = 0.01
"""The share of requests that may fail by default."""
_SPARE = {"mean": 3, "max": 2, "p90": 1}
"""The columns for which a narrow terminal has no room, the largest number first."""
_COLUMN_WIDTH = 7
"""The smallest width of a column in characters: rows are printed before the cells of later rows are known."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `recipe loadtest`."""
    query.add_server(parser)
    query.add_input(parser)
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
    load.add_argument("--stream", action="store_true",
                      help="of a package that generates text, ask the model that answers in pieces: the table has the "
                      "time to the first piece and between pieces")  # fmt: skip
    load.add_argument("--max-errors", metavar="SHARE", type=amounts.share, default=_MOST_ERRORS,
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
    """Measure the loads one after another, and print a row of the table for each load as soon as it is measured."""
    from engine.client.client import Client

    points = _points(arguments)
    with Client(arguments.url, timeout=arguments.timeout) as client:
        model = client.choose(arguments.model, stream=arguments.stream)
        figures = _print(model, _measured(client, model, points, arguments), arguments)
    _judge(figures, arguments.max_errors)
    return Exit.OK


def _points(arguments: argparse.Namespace) -> list[Point]:
    from engine.client import generator
    from engine.client.load import Point

    if arguments.concurrency and arguments.rate:
        raise UsageError("--concurrency is a closed loop and --rate an open one", hint="measure one after the other")
    if arguments.rate:
        return [Point(rate=rate) for rate in generator.rates(arguments.rate)]
    return [Point(concurrency=callers) for callers in generator.concurrencies(arguments.concurrency or "1")]


def _measured(
    client: Client, model: ModelMetadata, points: list[Point], arguments: argparse.Namespace
) -> Iterator[LoadFigures]:
    """Yield the measured figures of each load; perf_analyzer or processes of recipe send the requests."""
    from engine.client import encoded, load, perf_analyzer
    from engine.client.generator import LoadSettings

    requests = query.requests_of(arguments, model, rows_each=arguments.batch)
    # A request that the server refuses ends the test before any load.
    if model.decoupled:
        for _ in client.stream(model, requests[0].arrays):
            pass
    else:
        client.infer(model, requests[0].arrays)
    settings = LoadSettings(
        arguments.duration, arguments.warm_up, arguments.timeout, arguments.arrivals, arguments.seed,
        count_tokens=model.generates and any(output.name == encoded.TOKENS for output in model.outputs),
        streams=model.decoupled,
    )  # fmt: skip
    program, version = _program(model, points, arguments)
    if program is not None:
        for point in points:
            yield perf_analyzer.put(
                client, model, requests, program=program, version=version, point=point, settings=settings
            )
        return
    every = [request.arrays for request in requests]
    yield from load.sweep(client, model, every, points, settings, processes=arguments.processes)


def _program(model: ModelMetadata, points: list[Point], arguments: argparse.Namespace) -> tuple[Path | None, str]:
    """Return perf_analyzer and its version, or None. Raises StepError where it is demanded and cannot run."""
    from engine.client import perf_analyzer

    demanded = arguments.by == "perf_analyzer" or arguments.perf_analyzer is not None
    if model.decoupled and demanded:
        raise UsageError(
            f"{model.name} answers in pieces, which recipe does not measure with perf_analyzer", hint="use --with own"
        )
    if arguments.by == "own" or (not demanded and (points[0].rate or model.decoupled)):
        return None, ""
    program, version_or_reason = perf_analyzer.find(arguments.perf_analyzer)
    if program is None and demanded:
        raise StepError(version_or_reason, hint=perf_analyzer.hint(version_or_reason))
    if program is None and "PATH" not in version_or_reason:
        print(f"measured by recipe's own clients: {version_or_reason}", file=sys.stderr)
    return program, version_or_reason


def _print(model: ModelMetadata, measured: Iterator[LoadFigures], arguments: argparse.Namespace) -> list[LoadFigures]:
    """Print the figures of each load once they are measured, with --json as a line of JSON; return all figures."""
    import json

    from engine.client import load
    from engine.report import grid

    every: list[LoadFigures] = []
    columns: list[grid.Column] = []
    for number, figures in enumerate(measured):
        every.append(figures)
        if arguments.json:
            print(json.dumps({"model": model.name, **figures.to_json()}, ensure_ascii=False), flush=True)
            continue
        if number == 0:
            print(f"{model.name} at {arguments.url}, latencies in ms, measured by {figures.by}")
            titles = load.titles(figures)
            columns = [
                grid.Column(right=True, width=max(_COLUMN_WIDTH, len(title)), spare=_SPARE.get(title, 0))
                for title in titles
            ]
            grid.show([titles], columns, indent=2)
        grid.show([load.row(figures, entry=model.name)], columns, indent=2)
        sys.stdout.flush()
        for note in load.notes(figures):
            print(f"{'':>8}{note}", flush=True)
    return every


def _judge(points: list[LoadFigures], limit: float) -> None:
    """Raise StepError where the share of failed requests exceeds the limit at any load."""
    broken = [figures for figures in points if figures.errors.share > limit or not figures.requests]
    if broken:
        worst = max(broken, key=lambda figures: figures.errors.share)
        raise StepError(
            f"{worst.errors.count} of {worst.requests} requests failed",
            [f"{count} x {message}" for message, count in worst.errors.messages.items()],
            f"more than --max-errors {limit:g} of them",
        )
