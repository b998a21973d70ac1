"""Interleaving: times contenders in turns, so that a disturbance of the machine reaches all of them alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Self

from engine.kit.bench.report import IN_PROCESS
from engine.kit.bench.stats import median, percentile
from engine.runtimes.runner import Runner

if TYPE_CHECKING:
    import numpy as np

    Tensors = Mapping[str, np.ndarray]

Call = Callable[[], object]
Clock = Callable[[], float]


@dataclass(frozen=True, kw_only=True)
class Contender:
    """A model that is timed, and the way to it: in this process or through a server.

    `prepare` does for given inputs all work that is not timed, and returns the call that is timed. The call runs
    inside the context that `active` returns.
    """

    runtime: str
    via: str
    ours: bool
    """Whether the model is the one that the recipe builds; the others are its rivals."""
    prepare: Callable[[Tensors], Call]
    active: Callable[[], AbstractContextManager[object]] = nullcontext

    def __str__(self) -> str:
        return self.runtime if self.via == IN_PROCESS else f"{self.runtime} {self.via}"

    @classmethod
    def in_process(cls, runner: Runner, *, ours: bool = False) -> Self:
        """Return the contender that runs a model in this process."""
        return cls(runtime=runner.name, via=IN_PROCESS, ours=ours, prepare=runner.prepare, active=runner.active)


@dataclass(frozen=True)
class Budget:
    """How long a measurement may take, in seconds for all contenders together, and in how many rounds.

    A p99 needs at least a hundred runs. A slow model gets fewer runs, but at least one in each round.
    """

    seconds: float = 8.0
    warm_up: float = 2.0
    rounds: int = 10
    most_runs: int = 1000


_SETTLING = 2
"""Calls at the start of a turn that are not timed: the caches hold another model's weights, its threads still spin."""
_STABLE = 0.05
"""A warm-up ends when the median latency falls by less than this share, and its quartiles lie within twice of it."""
_BATCH = 5
"""Calls of the warm-up that are compared with the calls before them."""


def measure(
    contenders: Sequence[Contender], inputs: Tensors, budget: Budget, *, clock: Clock = time.perf_counter
) -> list[list[list[float]]]:
    """Return for each contender its latencies in seconds, a list for each round.

    The order of the turns changes from round to round: A B C, then B C A, then C A B. Before the first round each
    contender is warmed up until its latency is stable.
    """
    share = 1 / len(contenders)
    turn = budget.seconds * share / budget.rounds
    calls = [contender.prepare(inputs) for contender in contenders]
    runs, settling = [], []
    for contender, call in zip(contenders, calls, strict=True):
        with contender.active():
            usual = _warm_up(call, budget.warm_up * share, clock)
        fitting = int(turn / usual)
        # To a call that fills a turn, cold caches are nothing, and another one before it would double the time.
        settling.append(_SETTLING if fitting > 1 else 0)
        runs.append(max(1, min(budget.most_runs // budget.rounds, fitting - settling[-1])))
    order = list(range(len(contenders)))
    latencies: list[list[list[float]]] = [[] for _ in contenders]
    for number in range(budget.rounds):
        first = number % len(order)
        for place in order[first:] + order[:first]:
            with contenders[place].active():
                latencies[place].append(_turn(calls[place], runs[place], settling[place], 2 * turn, clock))
    return latencies


def _warm_up(call: Call, seconds: float, clock: Clock) -> float:
    """Call until the latency is stable or `seconds` are over; return the median of the last calls."""
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
    """Return the latencies of `runs` calls; of fewer calls where the machine became so slow that time runs out."""
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
