"""Budgets: whether latencies keep their budgets; where that is not decided, the measurement is made again, longer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import repeat
from typing import TYPE_CHECKING

from engine.errors import JudgementError
from engine.kit.bench.interleaving import Budget, Clock, Contender, TimedRow, bench_rows
from engine.kit.bench.report import BenchReport, BenchRow, BudgetVerdict, case_in_words

if TYPE_CHECKING:
    from engine.kit.bench.interleaving import Tensors

Limits = Mapping[str, float]
"""The budget of a shape: the name of a statistic, such as `p95_ms` -> the largest number of milliseconds."""
_TRIES = 3
"""How often a shape is measured at most; each measurement takes twice as long as the one before."""
REPEATING_SECONDS = 600.0
"""A measurement is repeated only if the repetition is expected to end within 600 s after the first shape's beginning.

The limit holds for all shapes together, so that a step with many shapes ends within its own time limit.
"""


def decided_rows(
    axes: Mapping[str, int],
    inputs: Tensors,
    contenders: Sequence[Contender],
    budget: Budget,
    limits: Limits,
    *,
    until: float,
    clock: Clock = time.perf_counter,
) -> list[TimedRow]:
    """Measure as `bench_rows` does, and longer again while the confidence interval of a latency covers its limit.

    The times of one call on the GPU are measured behind the turns, so that they disturb no latency.
    """

    def measure(budget: Budget) -> list[TimedRow]:
        return bench_rows(axes, inputs, contenders, budget, clock=clock)

    timed = decided(measure, budget, limits, until=until, clock=clock)
    for index, contender in enumerate(contenders):
        if contender.device_times is not None:
            row, rounds = timed[index]
            with contender.active():
                timed[index] = replace(row, device=contender.device_times(inputs)), rounds
    return timed


def decided(
    measure: Callable[[Budget], list[TimedRow]],
    budget: Budget,
    limits: Limits,
    *,
    until: float,
    clock: Clock = time.perf_counter,
) -> list[TimedRow]:
    """Return the rows of `measure`, which is called with longer budgets while a judged latency is not decided.

    No measurement is repeated that is expected to end after the time `until` of the clock.
    The last measurement counts. `decided` never chooses between measurements by their results.
    """
    for number in range(_TRIES):
        began = clock()
        rows = measure(budget)
        ended = clock()
        open_ones = [each for row, _ in rows if row.judged for each in _with(BudgetVerdict.UNDECIDED, row, limits)]
        if not open_ones or number + 1 == _TRIES or ended + 2 * (ended - began) > until:
            break
        print(f"not decided: {'; '.join(open_ones)}; measuring again, twice as long")
        budget = budget.longer(2)
    return rows


def judge(report: BenchReport, budgets: Sequence[Limits]) -> None:
    """Compare the latencies of the recipe's own model with the budgets; `budgets` has one mapping for each shape.

    Raises JudgementError, which lists every missed budget and every budget about which the measurement decides nothing.
    """
    ours = [row for row in report.rows if row.judged]
    protocols = len({row.via for row in ours})
    pairs = list(zip(ours, (each for limits in budgets for each in repeat(limits, protocols)), strict=False))
    missed = [each for row, limits in pairs for each in _with(BudgetVerdict.MISSED, row, limits)]
    undecided = [each for row, limits in pairs for each in _with(BudgetVerdict.UNDECIDED, row, limits)]
    where = (f"on {report.device}; {report.noise_in_words}", *report.warnings)
    if missed:
        facts = [*missed[1:], *(f"not decided: {each}" for each in undecided), *where]
        hint = "set another budget under bench.shapes, or free the machine"
        raise JudgementError(f"A latency is over its budget: {missed[0]}", facts, hint)
    if undecided:
        raise JudgementError(
            f"It is not decided whether a latency keeps its budget: {undecided[0]}",
            [*undecided[1:], "the 95 % confidence interval of the measured latency covers the budget", *where],
            "free the machine and measure again with --force bench, or set another budget under bench.shapes",
        )


def _with(verdict: BudgetVerdict, row: BenchRow, limits: Limits) -> Iterator[str]:
    """Yield a text for each limit about which a row gives the verdict `verdict`."""
    for name, limit in limits.items():
        if row.verdict(name, limit) is verdict:
            low, high = row.interval(name)
            between = f" ({low:.3f} to {high:.3f})" if high > low else ""
            missed = f", {row.took(name) - limit:.3f} over its budget of"
            budget = missed if verdict is BudgetVerdict.MISSED else "; the budget is"
            yield f"{case_in_words(row)}: {name} is {row.took(name):.3f}{between}{budget} {limit:g}"
