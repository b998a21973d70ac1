"""Closed loop: clients that each send their next request when they have an answer, as users of a server do."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice

from engine.kit.bench import interleaving
from engine.kit.bench.interleaving import Budget, Call, Clock

_LEAST_EACH = 2
"""How many requests each client sends in a turn at least, so that most of a turn has all clients waiting."""


def rounds(
    contenders: Sequence[Sequence[Call]], *, clients: int, budget: Budget, clock: Clock = time.perf_counter
) -> list[list[float]]:
    """Return for each contender the seconds per answer of each round.

    A contender is the calls that send its requests, one call for each request. In each round the contenders take turns
    as in `interleaving.measure`. In each turn the clients send the same requests to each contender, and each request
    equally often: as many as fit into the turn of the slowest contender, and at least two for each client.
    `budget.seconds` is the time of all turns together.
    """
    turn = budget.seconds / budget.rounds / len(contenders)
    took: list[list[float]] = [[] for _ in contenders]
    with ThreadPoolExecutor(clients) as threads:
        least = max(_LEAST_EACH * clients, *map(len, contenders))
        usual = max(_turn(threads, calls, clients, least, clock) for calls in contenders)
        count = max(least, int(turn / usual))
        for index in interleaving.turns(budget.rounds, len(contenders)):
            calls = contenders[index]
            took[index].append(_turn(threads, calls, clients, count, clock))
    return took


def _turn(threads: ThreadPoolExecutor, calls: Sequence[Call], clients: int, count: int, clock: Clock) -> float:
    """Let clients send requests, the next one whenever a client has an answer; return the seconds per answer.

    They are at least `count`, and each equally often. The first request of each client wakes the server, and does not
    count.
    """
    count = math.ceil(count / len(calls)) * len(calls)
    for requests in (clients, count):
        begin = clock()
        for _ in threads.map(lambda call: call(), islice(cycle(calls), requests)):
            pass
    return (clock() - begin) / count
