"""Interleaving: time several runners in turns, so that whatever disturbs the machine disturbs them all."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from math import inf

from engine.kit.bench.stats import median, percentile

Call = Callable[[], object]
Clock = Callable[[], float]


@dataclass(frozen=True)
class Contender:
    """Something to time: the call, and the context that it is made in."""

    call: Call
    active: Callable[[], AbstractContextManager[object]]


@dataclass(frozen=True)
class Budget:
    """How long a measurement may take, in seconds for all contenders together, and how fine it is.

    A p99 means something from a hundred runs on; a slow model gets fewer, but never less than one a round.
    """

    seconds: float = 8.0
    warm_up: float = 2.0
    rounds: int = 10
    most_runs: int = 1000


_SETTLING = 2
"""Calls at the start of a turn that do not count: caches hold another's weights, other threads still spin."""
_STABLE = 0.05
_BATCH = 5


def measure(
    contenders: Mapping[str, Contender], budget: Budget, *, clock: Clock = time.perf_counter
) -> dict[str, list[list[float]]]:
    """Return each contender's latencies in seconds, a list a round: A B C, then B C A, ...

    Each is warmed up until it is stable first.
    """
    names = list(contenders)
    share = 1 / len(names)
    turn = budget.seconds * share / budget.rounds
    runs, settling = {}, {}
    for name in names:
        with contenders[name].active():
            usual = _warm_up(contenders[name].call, budget.warm_up * share, clock)
        fitting = int(turn / usual)
        # To a call that fills a turn, cold caches are nothing, and another one before it would double the time.
        settling[name] = _SETTLING if fitting > 1 else 0
        runs[name] = max(1, min(budget.most_runs // budget.rounds, fitting - settling[name]))
    measured: dict[str, list[list[float]]] = {name: [] for name in names}
    for number in range(budget.rounds):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            with contenders[name].active():
                measured[name].append(_turn(contenders[name].call, runs[name], settling[name], 2 * turn, clock))
    return measured


def _warm_up(call: Call, seconds: float, clock: Clock) -> float:
    """Call until the middle of the last calls is no faster than before, or time is up; return that latency."""
    end = clock() + seconds
    batch = _times(call, 1, clock)
    best = median(batch)
    while clock() < end:
        batch = _times(call, _BATCH if best * _BATCH < seconds else 1, clock)
        middle = median(batch)
        if middle > best * (1 - _STABLE) and _is_even(batch):
            return middle
        best = min(best, middle)
    return best


def _is_even(batch: Sequence[float]) -> bool:
    return percentile(batch, 0.75) <= percentile(batch, 0.25) * (1 + 2 * _STABLE)


def _turn(call: Call, runs: int, settling: int, seconds: float, clock: Clock) -> list[float]:
    """Time some runs, fewer where the machine has become so slow that they would take too long."""
    end = clock() + seconds
    if settling:
        _times(call, settling, clock, end=end)
    return _times(call, runs, clock, end=end)


def _times(call: Call, runs: int, clock: Clock, *, end: float = inf) -> list[float]:
    times: list[float] = []
    while len(times) < runs and (not times or clock() < end):
        begin = clock()
        call()
        times.append(clock() - begin)
    return times
