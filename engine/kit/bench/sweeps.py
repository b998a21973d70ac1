"""Sweeps: times models on sets of batches in turns; a sweep is one pass over all batches of a set."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.kit.bench import turns
from engine.kit.bench.interleaving import Budget, Call, Clock, Contender

if TYPE_CHECKING:
    import numpy as np

    Tensors = Mapping[str, np.ndarray]

_LEAST_ROUNDS = 3
"""The least number of rounds, however long a sweep takes; fewer rounds have no confidence interval."""

Rounds = list[list[float]]
"""The seconds of each call, a list for each round; a round holds whole sweeps."""


@dataclass(frozen=True)
class Sweep:
    """A model and the batches that it computes one after another."""

    contender: Contender
    batches: Sequence[Tensors]

    def seconds(self, rounds: Rounds) -> list[float]:
        """Return the mean seconds of a whole sweep in each round."""
        return [sum(calls) * len(self.batches) / len(calls) for calls in rounds]


def measure(sweeps: Sequence[Sweep], budget: Budget, *, clock: Clock = time.perf_counter) -> list[Rounds]:
    """Return the seconds of the calls of each sweep, by rounds.

    The order of the turns changes from round to round, as in `interleaving.measure`. A turn consists of whole sweeps:
    as many as fit into its time, and at least one. Where not even one sweep of each fits, there are fewer rounds, but
    at least 3.
    """
    calls = [[each.contender.prepare(batch) for batch in each.batches] for each in sweeps]
    usual = [_warm_up(each, own, budget.warm_up / len(sweeps), clock) for each, own in zip(sweeps, calls, strict=True)]
    rounds = min(budget.rounds, max(_LEAST_ROUNDS, int(budget.seconds / sum(usual))))
    turn = budget.seconds / rounds / len(sweeps)
    most = [budget.most_runs // rounds // len(own) for own in calls]
    repeats = [max(1, min(limit, int(turn / took))) for limit, took in zip(most, usual, strict=True)]
    latencies: list[Rounds] = [[] for _ in sweeps]
    before = None
    for number in range(rounds):
        for place in turns.order(number, len(sweeps)):
            turns.rest(before, place)
            before = place
            with sweeps[place].contender.active():
                calls[place][0]()  # not timed: the caches still hold another model's weights
                latencies[place].append(_times(calls[place] * repeats[place], clock))
    return latencies


def _warm_up(sweep: Sweep, calls: Sequence[Call], seconds: float, clock: Clock) -> float:
    """Call a model once with every batch, and again while `seconds` are not over; return the seconds of a sweep."""
    with sweep.contender.active():
        end = clock() + seconds
        took = sum(_times(calls, clock))
        while clock() < end:
            took = min(took, sum(_times(calls, clock)))
    return took


def _times(calls: Sequence[Call], clock: Clock) -> list[float]:
    times = []
    for call in calls:
        begin = clock()
        call()
        times.append(clock() - begin)
    return times
