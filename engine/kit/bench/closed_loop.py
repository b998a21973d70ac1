"""Closed loop: clients that each send their next request when they have an answer, as users of a server do."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from engine.kit.bench import turns
from engine.kit.bench.interleaving import Budget, Call, Clock

_PATIENCE = 600.0
"""Seconds after which a client that waits for the others gives up: one of them has failed."""


def rounds(
    contenders: Sequence[Sequence[Call]], *, clients: int, budget: Budget, clock: Clock = time.perf_counter
) -> list[list[float]]:
    """Return for each contender the seconds per answer of each round.

    A contender is the calls that send its requests, one call for each request. In each round the contenders take turns
    as in `interleaving.measure`. In a turn, each client sends one request after the other, another one each time, and
    neighbours send different ones. `budget.seconds` is the time of all turns together.
    """
    turn = budget.seconds / budget.rounds / len(contenders)
    took: list[list[float]] = [[] for _ in contenders]
    before = None
    with ThreadPoolExecutor(clients) as threads:
        for calls in contenders:
            _turn(threads, calls, clients, min(turn, budget.warm_up / len(contenders)), clock)
        for number in range(budget.rounds):
            for place in turns.order(number, len(contenders)):
                turns.rest(before, place)
                before = place
                took[place].append(_turn(threads, contenders[place], clients, turn, clock))
    return took


def _turn(threads: ThreadPoolExecutor, calls: Sequence[Call], clients: int, seconds: float, clock: Clock) -> float:
    """Let clients send requests for some seconds, at least one each; return the seconds per answer.

    The first request of each client wakes the server, and does not count.
    """
    ready = threading.Barrier(clients, timeout=_PATIENCE)
    loops = [threads.submit(_client, calls, number, ready, seconds, clock) for number in range(clients)]
    failed = [error for error in (loop.exception() for loop in loops) if error is not None]
    if failed:  # clients that waited for the failed one have the error of the barrier
        raise next((error for error in failed if not isinstance(error, threading.BrokenBarrierError)), failed[0])
    ended = [loop.result() for loop in loops]
    begin, end = min(each[0] for each in ended), max(each[1] for each in ended)
    return (end - begin) / sum(each[2] for each in ended)


def _client(
    calls: Sequence[Call], number: int, ready: threading.Barrier, seconds: float, clock: Callable[[], float]
) -> tuple[float, float, int]:
    """Send requests one after the other; return when the first began, when the last ended, and how many there were."""
    try:
        calls[number % len(calls)]()
    except BaseException:
        ready.abort()
        raise
    ready.wait()
    begin, sent = clock(), 0
    now = begin
    while not sent or now < begin + seconds:
        calls[(number + sent) % len(calls)]()
        sent += 1
        now = clock()
    return begin, now, sent
