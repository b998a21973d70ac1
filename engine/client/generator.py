"""Generator: one process that puts load on a server in a closed or an open loop, and measures its own delays."""

from __future__ import annotations

import asyncio
import random
import re
import selectors
import time
from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal, TypeVar

from engine.client.address import Address
from engine.client.wires import GrpcStreamWire, GrpcWire, HttpStreamWire, HttpWire, WireError, prepare
from engine.errors import UsageError

AT_ONCE = 512
"""The most requests of an open loop at once; the latency of one that waits counts from its planned start time."""
_SELECT_LIMIT = 900
"""The most connections that `select` watches. `epoll` watches more, but its timeouts are whole milliseconds."""
_MOST_GRPC_REQUESTS = 64
"""The number of concurrent requests above which no further gRPC connections are opened."""
_TICK = 0.01
"""Seconds between two measurements of the process's own delay."""
_PAUSE_AFTER_ERROR = 0.02
"""Seconds that each client of a closed loop waits after an error, such as that of a server that is gone."""
Arrivals = Literal["poisson", "constant"]
_Number = TypeVar("_Number", int, float)
_MOST_POINTS = 100


@dataclass(frozen=True)
class LoadSettings:
    """The settings that all points of a load test share; times are in seconds."""

    duration: float
    warm_up: float
    timeout: float
    arrivals: Arrivals = "poisson"
    seed: int = 0
    count_tokens: bool = False
    streams: bool = False
    """Whether the model answers in pieces, whose times are measured."""

    @property
    def end(self) -> float:
        """The time after which no request begins, in seconds from the start of the load."""
        return self.warm_up + self.duration


@dataclass(frozen=True)
class Load:
    """The part of a load that one process makes, in seconds from `start`, a reading of time.monotonic."""

    address: Address
    requests: Sequence[bytes]
    start: float
    settings: LoadSettings
    callers: int = 0
    """The number of concurrent clients in a closed loop, each with one request at a time; 0 in an open loop."""
    arrivals: Sequence[float] = ()
    """The start times of the requests of an open loop."""
    first: int = 0
    """The index of the process's first request in `requests`: each process begins with a different request."""


@dataclass
class LoadOutcome:
    """The outcome of a load: the start and end times of answered requests, errors, and the process's own delays."""

    begun: array[float] = field(default_factory=lambda: array("d"))
    ended: array[float] = field(default_factory=lambda: array("d"))
    tokens: array[int] = field(default_factory=lambda: array("q"))
    firsts: array[float] = field(default_factory=lambda: array("d"))
    """For each streamed answer, the seconds from the start of its request to its first piece."""
    gaps: array[float] = field(default_factory=lambda: array("d"))
    """The seconds between two successive pieces of an answer, for all streamed answers."""
    errors: Counter[str] = field(default_factory=Counter)
    delays: array[float] = field(default_factory=lambda: array("d"))
    """The seconds by which the process woke up later than planned, which add to the latencies, by measurement."""
    busy: float = 0.0
    """The share of one CPU that the process used during the load."""


def serve(pipe: Any) -> None:
    """Run the loads that come through a pipe, after the arguments of `wires.prepare`, which get the answer None."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent process, too, which then closes the pipe
    try:
        prepare(*pipe.recv())
        pipe.send(None)
        while True:
            pipe.send(run(pipe.recv()))
    except (EOFError, BrokenPipeError):
        return


def run(load: Load) -> LoadOutcome:
    """Send the requests of a load to its server until the load ends; return the outcome."""
    connections = max(load.callers, AT_ONCE if load.arrivals else 0)
    selector = selectors.SelectSelector() if connections <= _SELECT_LIMIT else selectors.DefaultSelector()
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selector)) as runner:
        return runner.run(_run(load))


async def _run(load: Load) -> LoadOutcome:
    outcome = LoadOutcome()
    wire = _wire(load)
    await asyncio.sleep(max(0.0, load.start - time.monotonic()))
    delays = asyncio.create_task(_measure_delays(load, outcome))
    cpu_seconds, begun = time.process_time(), time.monotonic()
    try:
        if load.callers:
            await asyncio.gather(*(_closed_loop(load, wire, outcome, number) for number in range(load.callers)))
        else:
            await _open_loop(load, wire, outcome)
        outcome.busy = (time.process_time() - cpu_seconds) / (time.monotonic() - begun)
    finally:
        delays.cancel()
        await wire.close()
    return outcome


def _wire(load: Load) -> HttpWire | GrpcWire:
    streams, counts = load.settings.streams, load.settings.count_tokens
    if load.address.protocol == "http":
        return (HttpStreamWire if streams else HttpWire)(load.address, count_tokens=counts)
    at_once = min(load.callers or AT_ONCE, _MOST_GRPC_REQUESTS)
    return (GrpcStreamWire if streams else GrpcWire)(load.address, count_tokens=counts, at_once=at_once)


async def _closed_loop(load: Load, wire: HttpWire | GrpcWire, outcome: LoadOutcome, number: int) -> None:
    index = load.first + number
    while (begun := time.monotonic() - load.start) < load.settings.end:
        request = load.requests[index % len(load.requests)]
        if not await _send(load, wire, outcome, request, begun):
            await asyncio.sleep(_PAUSE_AFTER_ERROR)
        index += load.callers


async def _open_loop(load: Load, wire: HttpWire | GrpcWire, outcome: LoadOutcome) -> None:
    """Send each request at its start time, whether the requests before it are answered or not."""
    places = asyncio.Semaphore(AT_ONCE)

    async def send(request: bytes, begun: float) -> None:
        async with places:
            await _send(load, wire, outcome, request, begun)

    under_way = set()
    for number, begun in enumerate(load.arrivals, load.first):
        await asyncio.sleep(max(0.0, load.start + begun - time.monotonic()))
        task = asyncio.create_task(send(load.requests[number % len(load.requests)], begun))
        under_way.add(task)
        task.add_done_callback(under_way.discard)
    await asyncio.gather(*under_way)


async def _send(load: Load, wire: HttpWire | GrpcWire, outcome: LoadOutcome, request: bytes, begun: float) -> bool:
    """Send a request, whose latency counts from `begun`; return whether it was answered. A warm-up has no errors."""
    counts = begun >= load.settings.warm_up
    try:
        async with asyncio.timeout(load.settings.timeout):
            if isinstance(wire, HttpStreamWire | GrpcStreamWire):
                answer = await wire.stream(request)
                tokens = answer.tokens
                if counts:
                    outcome.firsts.append(answer.moments[0] - load.start - begun)
                    outcome.gaps.extend(after - before for before, after in pairwise(answer.moments))
            else:
                tokens = await wire.send(request)
    except TimeoutError:
        outcome.errors[f"no answer within {load.settings.timeout:g} s"] += counts
        return False
    except WireError as error:
        outcome.errors[str(error)] += counts
        return False
    # A request that begins in the warm-up and ends later counts for the throughput, and not for the latencies.
    outcome.begun.append(begun)
    outcome.ended.append(time.monotonic() - load.start)
    outcome.tokens.append(tokens)
    return True


async def _measure_delays(load: Load, outcome: LoadOutcome) -> None:
    while True:
        due = time.monotonic() + _TICK
        await asyncio.sleep(_TICK)
        now = time.monotonic()
        if load.settings.warm_up <= now - load.start <= load.settings.end:
            outcome.delays.append(now - due)


def planned(rate: float, seconds: float, *, arrivals: Arrivals, seed: int) -> list[float]:
    """Return the start time of each request in seconds, `rate` requests per second.

    With `constant`, the gaps between requests are equal. With `poisson`, each gap is drawn from the exponential
    distribution, as requests of independent clients arrive. The same seed gives the same start times.
    """
    if arrivals == "constant":
        return [number / rate for number in range(round(rate * seconds))]
    generator = random.Random(seed)  # noqa: S311 - nothing secret
    starts: list[float] = []
    start = generator.expovariate(rate)
    while start < seconds:
        starts.append(start)
        start += generator.expovariate(rate)
    return starts


def concurrencies(text: str) -> list[int]:
    """Return numbers of concurrent clients: `1,8,32`, `1:32:2x` (doubled each time), `4:16:4` (4 more each time)."""
    return _points(text, int, r"[0-9]+")


def rates(text: str) -> list[float]:
    """Return request rates, in requests per second: `50,100`, `10:80:2x`, `10:50:20`."""
    return _points(text, float, r"[0-9]+(?:\.[0-9]+)?")


def _points(text: str, number: Callable[[str], _Number], form: str) -> list[_Number]:
    points: list[_Number] = []
    for part in text.split(","):
        match = re.fullmatch(rf"({form})(?::({form}):({form})(x?))?", part.strip())
        if match is None:
            raise UsageError(f"{text!r} is no list of loads", hint="write 1,8,32 or 1:32:2x or 4:16:4")
        first, last = number(match[1]), number(match[2] or match[1])
        step, multiplies = number(match[3] or "1"), bool(match[4])
        if first <= 0:
            raise UsageError(f"a load of {match[1]} sends no requests", hint="the smallest is 1, as in 1,8,32")
        if last < first or step <= (1 if multiplies else 0):
            raise UsageError(f"{part.strip()!r} does not lead from one load to a higher one", hint="write 1:32:2x")
        while first <= last and len(points) <= _MOST_POINTS:
            points.append(first)
            first = first * step if multiplies else first + step
    if len(points) > _MOST_POINTS:
        raise UsageError(f"{text!r} makes more than {_MOST_POINTS} points", hint="take larger steps")
    return points
