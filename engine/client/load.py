"""Load: one point of a load test: the generators' processes, the server's counters around it, and the figures."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Self

from engine.client import arrivals, counters, failures
from engine.client.address import Protocol
from engine.client.client import Client
from engine.client.entry import Entry
from engine.client.figures import ClientFigures, Errors, LoadFigures, ModelTimes, NotMeasured
from engine.client.generator import Done, Load, serve
from engine.client.load_table import FULL
from engine.client.repeating import latencies
from engine.errors import StepError
from engine.kit.bench import stats

_LEAD = 0.3
"""Seconds until a load starts: every process has its plan by then."""
_LATE_SHARE, _LATE = 0.1, 0.001
"""A client is too slow where waking up takes it a tenth of the median latency, and more than a millisecond."""
_CPUS_EACH, _MOST = 4, 8


@dataclass(frozen=True)
class Point:
    """What is put on the server: so many callers in a closed loop, or so many requests a second in an open one."""

    concurrency: int = 0
    rate: float = 0.0


@dataclass(frozen=True)
class Settings:
    """What all points of a test have in common; times in seconds."""

    duration: float
    warm_up: float
    timeout: float
    arrivals: arrivals.Arrivals = "poisson"
    seed: int = 0
    count_tokens: bool = False


def processes_here(point: Point, asked: int | None) -> int:
    """Return how many processes make the load: one for every four CPUs, for the server may need the others."""
    most = asked or min(_MOST, max(1, (os.cpu_count() or 1) // _CPUS_EACH))
    return min(most, point.concurrency) if point.concurrency else most


class Generators:
    """Processes that put loads on a server, kept from point to point."""

    def __init__(self, count: int, protocol: Protocol, *, count_tokens: bool) -> None:
        from multiprocessing import get_context

        fresh = get_context("spawn")  # gRPC does not survive a fork
        self._lines: list[Any] = []
        self._processes: list[Any] = []
        for _ in range(count):
            ours, theirs = fresh.Pipe()
            process = fresh.Process(target=serve, args=(theirs,), daemon=True)
            process.start()
            theirs.close()
            ours.send((protocol, count_tokens))
            self._lines.append(ours)
            self._processes.append(process)
        for line in self._lines:
            _received(line)  # it is up, with its imports done

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for line in self._lines:
            line.close()
        for process in self._processes:
            process.join(0.5)
            process.kill()

    def put(
        self, client: Client, entry: Entry, requests: Sequence[bytes], point: Point, settings: Settings
    ) -> LoadFigures:
        """Put one load on the server and return its figures. Raises failures.Gone and StepError."""
        lines = self._lines[: processes_here(point, len(self._lines))]
        load = Load(client.address, requests, 0.0, settings.warm_up, settings.duration, settings.timeout,
                    count_tokens=settings.count_tokens)  # fmt: skip
        load = replace(load, start=time.monotonic() + _LEAD)
        for line, share in zip(lines, _shares(load, point, settings, len(lines)), strict=True):
            line.send(share)
        before = _counted(client, load.start + load.warm_up)
        after = _counted(client, load.start + load.end)
        done = [_received(line) for line in lines]
        return _figures(point, load, done, _server(entry, before, after))


def _received(line: Any) -> Any:
    try:
        return line.recv()
    except EOFError:
        raise StepError("a process of the load generator died", hint="is there enough memory?") from None


def _shares(load: Load, point: Point, settings: Settings, count: int) -> list[Load]:
    """Return what each process does: a share of the callers, or every so manieth arrival."""
    if point.concurrency:
        callers = [point.concurrency // count + (number < point.concurrency % count) for number in range(count)]
        return [replace(load, callers=each, first=sum(callers[:number])) for number, each in enumerate(callers)]
    moments = arrivals.planned(point.rate, load.end, arrivals=settings.arrivals, seed=settings.seed)
    return [replace(load, arrivals=moments[number::count], first=number) for number in range(count)]


def _counted(client: Client, moment: float) -> dict[str, counters.Counters] | None:
    """Return the server's counters at a moment, None where it has none or does not answer any more."""
    time.sleep(max(0.0, moment - time.monotonic()))
    with suppress(failures.Refused, failures.Gone):
        return client.statistics()
    return None


def _server(
    entry: Entry, before: dict[str, counters.Counters] | None, after: dict[str, counters.Counters] | None
) -> Mapping[str, ModelTimes]:
    return {} if before is None or after is None else counters.between(entry, before, after)


def _figures(point: Point, load: Load, done: Sequence[Done], server: Mapping[str, ModelTimes]) -> LoadFigures:
    """Return throughput by what was answered within the window, latencies of what began in it, and errors."""
    answered = [each for part in done for each in zip(part.begun, part.ended, part.tokens, strict=True)]
    seconds = [ended - begun for begun, ended, _ in answered if begun >= load.warm_up]
    within = [tokens for _, ended, tokens in answered if load.warm_up <= ended <= load.end]
    errors = sum((part.errors for part in done), Counter())
    failed, asked = sum(errors.values()), sum(errors.values()) + len(seconds)
    return LoadFigures(
        concurrency=point.concurrency or None,
        rate=point.rate or None,
        by="recipe",
        throughput=round(len(within) / load.duration, 3),
        requests=asked,
        latency=latencies(seconds) if seconds else NotMeasured(),
        errors=Errors(
            count=failed,
            share=round(failed / asked, 4) if asked else 0.0,
            messages={message: count for message, count in errors.most_common(3) if count},
        ),
        client=_client(done, stats.median(seconds) if seconds else 0.0),
        tokens_per_second=round(sum(within) / load.duration, 3) if load.count_tokens else None,
        server=server,
    )


def _client(done: Sequence[Done], median: float) -> ClientFigures:
    """Return how much of its CPU the busiest process used, how late it was, and whether that spoils the figures."""
    busy = max(part.busy for part in done)
    late = max(stats.percentile(part.lags, 0.95) if part.lags else 0.0 for part in done)
    saturated = busy >= FULL or late > max(_LATE, _LATE_SHARE * median)
    return ClientFigures(len(done), busy=round(busy, 3), late_p95_ms=round(1e3 * late, 3), saturated=saturated)
