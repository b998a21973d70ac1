"""Mixed lengths: batches of rows that differ in length, the padding that they need, and lengths for fixed profiles."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from enum import StrEnum

from engine.kit.inputs.token_rows import RowLimits

STEP = 8
"""The lengths of buckets are multiples of 8, as matrix kernels prefer them."""
MOST_BUCKETS = 4
_WORTH = 0.05
"""One bucket more must save at least 5 % of the computed positions."""


class SampleOrder(StrEnum):
    """The order in which rows are cut into batches."""

    ARRIVAL = "arrival"
    """The order of the samples' file."""
    SORTED = "sorted"
    """From the shortest row to the longest."""


def batches(lengths: Sequence[int], size: int, order: SampleOrder) -> list[list[int]]:
    """Return the indices of the rows of each batch of `size` rows; the last batch may have fewer rows."""
    indices = list(range(len(lengths)))
    if order is SampleOrder.SORTED:
        indices.sort(key=lambda index: lengths[index])  # rows of one length stay in the order of their arrival
    return [indices[start : start + size] for start in range(0, len(indices), size)]


def padded(rows: int, longest: int, allowed: Sequence[RowLimits]) -> tuple[int, int] | None:
    """Return the shape [rows, tokens] to which a batch is padded, with the fewest positions that the model takes.

    `allowed` holds the limits of each profile; a model without limits takes the batch as it is. Returns None where no
    profile takes the batch.
    """
    if not allowed:
        return rows, longest
    shapes = [
        (max(rows, limits.batch[0]), max(longest, limits.sequence[0]))
        for limits in allowed
        if _within(rows, limits.batch[1]) and _within(longest, limits.sequence[1])
    ]
    return min(shapes, key=math.prod, default=None)


def padding(tokens: int, positions: int) -> float:
    """Return the share of padded positions among all positions that the model computes."""
    return 1 - tokens / positions if positions else 0.0


def buckets(lengths: Sequence[int], *, longest: int | None = None, most: int = MOST_BUCKETS) -> tuple[int, ...]:
    """Return the lengths, ascending, to which texts are padded, with the fewest positions for so many buckets.

    Each text is padded to the smallest bucket that holds it. The costs are the computed positions: a model's attention
    costs more per position in a longer row, which this does not count. Lengths are multiples of `STEP`, except for
    `longest`, the greatest length that the model takes. There are as few buckets as save `_WORTH` each, and at most
    `most`.
    """
    counts = Counter(_rounded(length, longest) for length in lengths)
    ends = sorted(counts)
    below = [0]
    for end in ends:
        below.append(below[-1] + counts[end])
    # Dynamic programming: costs[j] is the least number of positions of all texts up to ends[j - 1] in so many buckets.
    costs: list[float] = [0, *[math.inf] * len(ends)]
    starts: list[list[int]] = []
    chosen: tuple[int, ...] = ()
    best = math.inf
    for _ in range(min(most, len(ends))):
        following: list[float] = [math.inf] * len(costs)
        start = [0] * len(costs)
        for j in range(1, len(costs)):
            last = [(costs[i] + ends[j - 1] * (below[j] - below[i]), i) for i in range(j)]
            following[j], start[j] = min(last)
        starts.append(start)
        costs = following
        if costs[-1] > best * (1 - _WORTH):
            break
        best, chosen = costs[-1], _ends(ends, starts)
    return chosen


def positions(lengths: Sequence[int], buckets: Sequence[int]) -> int:
    """Return the positions that are computed where each text is padded to the smallest bucket that holds it."""
    return sum(min(bucket for bucket in buckets if bucket >= length) for length in lengths)


def evenly(count: int, most: int) -> list[int]:
    """Return the indices of at most `most` of `count` items, evenly spaced and in their order."""
    kept = min(count, most)
    return [number * count // kept for number in range(kept)]


def _ends(ends: Sequence[int], starts: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Return the buckets that the beginnings of the last buckets, one list for each number of buckets, stand for."""
    chosen: list[int] = []
    place = len(ends)
    for start in reversed(starts):
        chosen.append(ends[place - 1])
        place = start[place]
    return tuple(reversed(chosen))


def _rounded(length: int, longest: int | None) -> int:
    up = math.ceil(length / STEP) * STEP
    return up if longest is None else max(length, min(up, longest))


def _within(size: int, limit: int | None) -> bool:
    return limit is None or size <= limit
