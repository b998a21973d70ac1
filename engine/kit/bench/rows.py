"""Rows: measures contenders side by side at one shape, and makes a row of the report of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from engine.kit.bench import stats
from engine.kit.bench.interleaving import Budget, Contender, measure
from engine.kit.bench.report import IN_PROCESS, BenchRow

if TYPE_CHECKING:
    import numpy as np


def measured(
    axes: Mapping[str, int], inputs: Mapping[str, np.ndarray], contenders: Sequence[Contender], budget: Budget
) -> list[tuple[BenchRow, list[list[float]]]]:
    """Return a row for each contender in their order, and its latencies: milliseconds, a list for each round.

    In a row of ours, `ratio_to` says how many times longer each rival takes on the same way. The budget grows with
    the contenders that go through a server, so that the contenders in process keep their time.
    """
    in_process = sum(each.via == IN_PROCESS for each in contenders)
    share = len(contenders) / max(1, in_process)
    longer = replace(budget, seconds=budget.seconds * share, warm_up=budget.warm_up * share)
    seconds = measure(contenders, inputs, longer)
    rows = []
    for contender, rounds in zip(contenders, seconds, strict=True):
        ratios = {
            other.runtime: stats.ratio(theirs, rounds)
            for other, theirs in zip(contenders, seconds, strict=True)
            if contender.ours and not other.ours and other.via == contender.via
        }
        rounds_ms = [[value * 1e3 for value in values] for values in rounds]
        row = BenchRow.of_rounds(
            rounds_ms,
            shape=dict(axes),
            via=contender.via,
            runtime=contender.runtime,
            ours=contender.ours,
            ratio_to=ratios,
        )
        rows.append((row, [[round(value, 3) for value in values] for values in rounds_ms]))
    return rows
