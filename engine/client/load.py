"""Load: measures a point of a load test with several processes; reads the server's counters before and after it."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

from engine.client import encoded, failures, figures, generator
from engine.client.address import Protocol
from engine.client.client import Client
from engine.client.figures import ClientFigures, Errors, Latencies, LoadFigures, ModelTimes, NotMeasured, StreamTimes
from engine.client.generator import Load, LoadOutcome, LoadSettings, serve
from engine.client.model_metadata import ModelMetadata
from engine.errors import StepError
from engine.kit.bench import stats
from engine.reporting import Number, measured, numbers

if TYPE_CHECKING:
    import numpy as np

_LEAD = 0.3
"""Seconds before the start of a load in which every process receives its part of the load."""
_LATE_SHARE = 0.1
"""A client counts as too slow if the 95th percentile of its delays exceeds this share of the median latency."""
_LATE_SECONDS = 0.001
"""Delays of at most this many seconds never make a client count as too slow."""
_CPUS_PER_PROCESS = 4
"""The number of CPUs for each process that makes load, because a server on the same machine needs CPUs, too."""
_MOST_PROCESSES = 8
"""Upper limit of the number of processes that make a load, where the user names no limit."""
_EXIT_SECONDS = 0.5
"""Seconds that a process which makes load gets to end before it is killed."""
_MOST_MESSAGES = 3
"""The largest number of different error messages in a report."""
_DIGITS = 3
"""Decimal places of throughputs, delays and the CPU use in a report."""
_NOTHING = "-"
FULL = 0.9
"""The CPU use from which on a process of the client counts as overloaded, as a share of one CPU."""


@dataclass(frozen=True)
class Point:
    """One point of a load test: the concurrent clients of a closed loop, or the requests per second of an open loop."""

    concurrency: int = 0
    rate: float = 0.0


def sweep(
    client: Client,
    model: ModelMetadata,
    requests: Sequence[Mapping[str, np.ndarray]],
    points: Sequence[Point],
    settings: LoadSettings,
    *,
    processes: int | None = None,
) -> Iterator[LoadFigures]:
    """Yield each point's figures, by at most `processes` processes. Raises ServerGoneError and StepError."""
    bodies = [encoded.request(client.address, model, arrays) for arrays in requests]
    count = max(process_count(point, processes) for point in points)
    protocol = client.address.protocol or "http"
    with Generators(count, protocol, decodes=settings.count_tokens or settings.streams) as generators:
        for point in points:
            yield generators.put(client, model, bodies, point, settings)


def process_count(point: Point, limit: int | None) -> int:
    """Return how many processes make the load: at most `limit`, by default one for every four CPUs."""
    most = limit or min(_MOST_PROCESSES, max(1, (os.cpu_count() or 1) // _CPUS_PER_PROCESS))
    return min(most, point.concurrency) if point.concurrency else most


class Generators:
    """Processes that put loads on a server: the loads of all points of a load test, one after the other."""

    def __init__(self, count: int, protocol: Protocol, *, decodes: bool) -> None:
        from multiprocessing import get_context

        fresh = get_context("spawn")  # gRPC does not work in a forked process
        self._pipes: list[Any] = []
        self._processes: list[Any] = []
        for _ in range(count):
            ours, theirs = fresh.Pipe()
            process = fresh.Process(target=serve, args=(theirs,), daemon=True)
            process.start()
            theirs.close()
            ours.send((protocol, decodes))
            self._pipes.append(ours)
            self._processes.append(process)
        for pipe in self._pipes:
            _received(pipe)  # the process has started, and has imported its modules

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for pipe in self._pipes:
            pipe.close()
        for process in self._processes:
            process.join(_EXIT_SECONDS)
            process.kill()

    def put(
        self, client: Client, model: ModelMetadata, requests: Sequence[bytes], point: Point, settings: LoadSettings
    ) -> LoadFigures:
        """Put one load on the server. Raises failures.ServerGoneError, and StepError where a process died."""
        pipes = self._pipes[: process_count(point, len(self._pipes))]
        load = Load(client.address, requests, time.monotonic() + _LEAD, settings)
        for pipe, share in zip(pipes, _shares(load, point, len(pipes)), strict=True):
            pipe.send(share)
        before = _counters_at(load.start + settings.warm_up, client)
        after = _counters_at(load.start + settings.end, client)
        outcomes = [_received(pipe) for pipe in pipes]
        server = {} if before is None or after is None else figures.between(model, before, after)
        return _figures(point, settings, outcomes, server)


def _received(pipe: Any) -> Any:
    try:
        return pipe.recv()
    except EOFError:
        raise StepError("a process of the load generator died", hint="is there enough memory?") from None


def _shares(load: Load, point: Point, count: int) -> list[Load]:
    """Return the load of each process: a share of the concurrent clients, or every `count`-th start time."""
    if point.concurrency:
        most, rest = divmod(point.concurrency, count)
        shares = [most + 1 if number < rest else most for number in range(count)]
        return [replace(load, callers=share, first=sum(shares[:number])) for number, share in enumerate(shares)]
    settings = load.settings
    starts = generator.planned(point.rate, settings.end, arrivals=settings.arrivals, seed=settings.seed)
    return [replace(load, arrivals=starts[number::count], first=number) for number in range(count)]


def _counters_at(moment: float, client: Client) -> dict[str, figures.Counters] | None:
    """Wait until `moment`; return the server's counters then, or None where the server gives none."""
    time.sleep(max(0.0, moment - time.monotonic()))
    with suppress(failures.RequestRefusedError, failures.ServerGoneError):
        return client.statistics()
    return None


def _figures(
    point: Point, settings: LoadSettings, outcomes: Sequence[LoadOutcome], server: Mapping[str, ModelTimes]
) -> LoadFigures:
    """Return the figures of what ended (throughput) and what began (latencies) between warm-up and end."""
    answered = [each for one in outcomes for each in zip(one.begun, one.ended, one.tokens, strict=True)]
    seconds = [ended - begun for begun, ended, _ in answered if begun >= settings.warm_up]
    tokens_within = [tokens for _, ended, tokens in answered if settings.warm_up <= ended <= settings.end]
    errors = sum((one.errors for one in outcomes), Counter())
    failed = sum(errors.values())
    requests = failed + len(seconds)
    tokens_per_second = round(sum(tokens_within) / settings.duration, _DIGITS) if settings.count_tokens else None
    return LoadFigures(
        concurrency=point.concurrency or None,
        rate=point.rate or None,
        by="recipe",
        throughput=round(len(tokens_within) / settings.duration, _DIGITS),
        requests=requests,
        latency=Latencies.of_seconds(seconds) if seconds else NotMeasured(),
        errors=Errors(
            count=failed,
            share=round(failed / requests, stats.RATIO_DIGITS) if requests else 0.0,
            messages={message: count for message, count in errors.most_common(_MOST_MESSAGES) if count},
        ),
        client=_client(outcomes, stats.median(seconds) if seconds else 0.0),
        tokens_per_second=tokens_per_second,
        stream=StreamTimes.of_seconds(
            [each for one in outcomes for each in one.firsts], [each for one in outcomes for each in one.gaps]
        ),
        server=server,
    )


def _client(outcomes: Sequence[LoadOutcome], median: float) -> ClientFigures:
    """Return how busy and how late the client's processes were, and whether the client was too slow."""
    busy = max(one.busy for one in outcomes)
    late = max(stats.percentile(one.delays, 0.95) if one.delays else 0.0 for one in outcomes)
    saturated = busy >= FULL or late > max(_LATE_SECONDS, _LATE_SHARE * median)
    return ClientFigures(
        len(outcomes), busy=round(busy, _DIGITS), late_p95_ms=round(1e3 * late, _DIGITS), saturated=saturated
    )


@dataclass(frozen=True)
class _ServerTimes:
    """The time that a request spends queued and computed on the server; for an ensemble, the sum over its models."""

    queue_ms: float = field(metadata=measured("queue", unit="ms", digits=3))
    compute_ms: float = field(metadata=measured("compute", unit="ms", digits=3))


def titles(figures: LoadFigures) -> list[str]:
    """Return the titles of the load table's columns; its times are milliseconds per request."""
    return [number.label for number, _ in _cells(figures, entry="")]


def row(figures: LoadFigures, *, entry: str) -> list[str]:
    """Return the cells of a point's row in the load table; `entry` is the model that the client calls."""
    return [_NOTHING if value is None else number.text(value) for number, value in _cells(figures, entry=entry)]


def notes(figures: LoadFigures) -> list[str]:
    """Return the lines below a point's row: error messages, and the warning that the client itself was too slow."""
    lines = [f"{count} x {message}" for message, count in figures.errors.messages.items()]
    if isinstance(figures.latency, NotMeasured) and not lines:
        lines.append("no request began and was answered: use a longer --duration")
    client = figures.client
    if isinstance(client, ClientFigures) and client.saturated and client.busy >= FULL:
        lines.append(f"the client used {client.busy:.0%} of a CPU and adds to the latencies: use more --processes")
    elif isinstance(client, ClientFigures) and client.saturated:
        late = f"the client was woken {client.late_p95_ms:.1f} ms late and adds to the latencies"
        lines.append(f"{late}: the machine is busy, measure from another")
    return lines


def _cells(figures: LoadFigures, *, entry: str) -> Iterator[tuple[Number, float | None]]:
    """Yield each column of the load table with its value; the load, such as its rate, only where it has a value."""
    yield from ((number, value) for number, value in _of(type(figures), figures) if value is not None)
    yield from _of(Latencies, figures.latency)
    if figures.stream is not None:
        yield from _of(StreamTimes, figures.stream)
    yield from _of(_ServerTimes, _server_times(figures.server, entry))
    yield from _of(Errors, figures.errors)


def _of(kind: type, value: object) -> Iterator[tuple[Number, float | None]]:
    return ((number, getattr(value, name, None)) for name, number in numbers(kind).items())


def _server_times(server: Mapping[str, ModelTimes], entry: str) -> _ServerTimes | NotMeasured:
    own = server.get(entry)
    if own is None or not own.requests:
        return NotMeasured()
    models = [model for name, model in server.items() if name != entry] or [own]
    return _ServerTimes(sum(model.queue_ms for model in models), sum(model.compute_ms for model in models))
