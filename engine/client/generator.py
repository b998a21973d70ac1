"""Generator: one process that puts a load on a server, in a closed or an open loop, and notes its own lateness."""

from __future__ import annotations

import asyncio
import selectors
import time
from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.client.address import Address
from engine.client.wires import GrpcWire, HttpWire, WireError, prepare

AT_ONCE = 512
"""The most requests under way in an open loop: those after them wait, and their time counts from their plan."""
_SELECT_LIMIT = 900
"""Connections up to which `select` can watch them: its timeouts are exact, those of epoll are whole milliseconds."""
_TICK = 0.01
_AFTER_AN_ERROR = 0.02
"""Seconds that a caller of a closed loop waits after an error: a server that is gone refuses at once, for ever."""


@dataclass(frozen=True)
class Load:
    """What one process does; moments are seconds, `start` by time.monotonic, the others after it."""

    address: Address
    requests: Sequence[bytes]
    start: float
    warm_up: float
    duration: float
    timeout: float
    callers: int = 0
    """Of a closed loop: each asks again as soon as it is answered."""
    arrivals: Sequence[float] = ()
    """Of an open loop: when each request begins."""
    first: int = 0
    """Which of the requests comes first: processes do not all begin with the same one."""
    count_tokens: bool = False

    @property
    def end(self) -> float:
        """When no request begins any more."""
        return self.warm_up + self.duration


@dataclass
class Done:
    """What became of a load: when each answered request began and ended, and what went wrong."""

    begun: array[float] = field(default_factory=lambda: array("d"))
    ended: array[float] = field(default_factory=lambda: array("d"))
    tokens: array[int] = field(default_factory=lambda: array("q"))
    errors: Counter[str] = field(default_factory=Counter)
    lags: array[float] = field(default_factory=lambda: array("d"))
    """How much later than asked for the process was woken: what its own slowness adds to a latency."""
    busy: float = 0.0
    """The share of one CPU that it used."""


def serve(line: Any) -> None:
    """Carry out the loads that come through a pipe, until it is closed.

    The first message says the protocol and whether tokens count: all that takes time to import is there before any
    load is. It is answered when that is so.
    """
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is interrupted, too, and closes the pipe
    try:
        prepare(*line.recv())
        line.send(None)
        while True:
            line.send(carry_out(line.recv()))
    except (EOFError, BrokenPipeError):
        return


def carry_out(load: Load) -> Done:
    """Put a load on a server and return what became of it."""
    exact = max(load.callers, AT_ONCE if load.arrivals else 0) <= _SELECT_LIMIT
    selector = selectors.SelectSelector() if exact else selectors.DefaultSelector()
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selector)) as runner:
        return runner.run(_carry_out(load))


async def _carry_out(load: Load) -> Done:
    done = Done()
    at_once = load.callers or AT_ONCE
    wire: HttpWire | GrpcWire = (
        HttpWire(load.address, count_tokens=load.count_tokens)
        if load.address.protocol == "http"
        else GrpcWire(load.address, count_tokens=load.count_tokens, at_once=min(at_once, 64))
    )
    await asyncio.sleep(max(0.0, load.start - time.monotonic()))
    ticking = asyncio.create_task(_tick(load, done))
    used, begun = time.process_time(), time.monotonic()
    try:
        if load.callers:
            await asyncio.gather(*(_caller(load, wire, done, number) for number in range(load.callers)))
        else:
            await _open_loop(load, wire, done)
        done.busy = (time.process_time() - used) / (time.monotonic() - begun)
    finally:
        ticking.cancel()
        await wire.close()
    return done


async def _caller(load: Load, wire: HttpWire | GrpcWire, done: Done, number: int) -> None:
    turn = load.first + number
    while (begun := time.monotonic() - load.start) < load.end:
        request = load.requests[turn % len(load.requests)]
        if not await _ask(load, wire, done, request, begun):
            await asyncio.sleep(_AFTER_AN_ERROR)
        turn += load.callers


async def _open_loop(load: Load, wire: HttpWire | GrpcWire, done: Done) -> None:
    places = asyncio.Semaphore(AT_ONCE)

    async def ask(request: bytes, begun: float) -> None:
        async with places:
            await _ask(load, wire, done, request, begun)

    under_way = set()
    for number, moment in enumerate(load.arrivals, load.first):
        await asyncio.sleep(max(0.0, load.start + moment - time.monotonic()))
        task = asyncio.create_task(ask(load.requests[number % len(load.requests)], moment))
        under_way.add(task)
        task.add_done_callback(under_way.discard)
    await asyncio.gather(*under_way)


async def _ask(load: Load, wire: HttpWire | GrpcWire, done: Done, request: bytes, begun: float) -> bool:
    """Send one request, whose time counts from `begun`; return whether it was answered. The warm-up is forgotten."""
    counts = begun >= load.warm_up
    try:
        async with asyncio.timeout(load.timeout):
            tokens = await wire.send(request)
    except TimeoutError:
        done.errors[f"no answer within {load.timeout:g} s"] += counts
        return False
    except WireError as error:
        done.errors[str(error)] += counts
        return False
    # What began in the warm-up and ended after it counts for the throughput, and not among the latencies.
    done.begun.append(begun)
    done.ended.append(time.monotonic() - load.start)
    done.tokens.append(tokens)
    return True


async def _tick(load: Load, done: Done) -> None:
    while True:
        due = time.monotonic() + _TICK
        await asyncio.sleep(_TICK)
        now = time.monotonic()
        if load.warm_up <= now - load.start <= load.end:
            done.lags.append(now - due)
