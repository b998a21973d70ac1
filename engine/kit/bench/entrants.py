"""Entrants: what is measured side by side, each a model and the way to it, and the rows of a table that it becomes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from engine.kit.bench import stats
from engine.kit.bench.interleaving import Budget, Contender, measure
from engine.kit.bench.report import IN_PROCESS, BenchRow
from engine.runtimes.runner import Runner

if TYPE_CHECKING:
    import numpy as np

    Tensors = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Entrant:
    """A model and the way to it.

    `prepare` does all that need not be timed for inputs of one shape, and returns the call that is timed; `active` is
    the context in which it is made.
    """

    runtime: str
    via: str
    ours: bool
    prepare: Callable[[Tensors], Callable[[], object]]
    active: Callable[[], AbstractContextManager[object]] = nullcontext

    def __str__(self) -> str:
        return self.runtime if self.via == IN_PROCESS else f"{self.runtime} {self.via}"

    @classmethod
    def in_process(cls, runner: Runner, *, ours: bool = False) -> Self:
        """Return a model that this process runs."""
        return cls(runner.name, IN_PROCESS, ours, runner.prepare, runner.active)


def measured(
    axes: Mapping[str, int], inputs: Tensors, entrants: Sequence[Entrant], budget: Budget
) -> list[tuple[BenchRow, list[list[float]]]]:
    """Return a row and its latencies, milliseconds by round, for each entrant in its order.

    A row of ours has `ratio_to`: how many times longer each rival takes that goes the same way. What goes through a
    server takes no time away from those in process.
    """
    contenders = {str(key): Contender(each.prepare(inputs), each.active) for key, each in enumerate(entrants)}
    near = max(1, sum(each.via == IN_PROCESS for each in entrants))
    share = len(entrants) / near
    longer = replace(budget, seconds=budget.seconds * share, warm_up=budget.warm_up * share)
    seconds = measure(contenders, longer)
    made = []
    for key, each in enumerate(entrants):
        turns = [[value * 1e3 for value in turn] for turn in seconds[str(key)]]
        rivals = {
            other.runtime: stats.ratio(seconds[str(place)], seconds[str(key)])
            for place, other in enumerate(entrants)
            if each.ours and not other.ours and other.via == each.via
        }
        row = BenchRow(
            shape=dict(axes),
            via=each.via,
            runtime=each.runtime,
            ours=each.ours,
            ratio_to=rivals,
            **vars(stats.summary(turns)),
        )
        made.append((row, [[round(value, 3) for value in turn] for turn in turns]))
    return made
