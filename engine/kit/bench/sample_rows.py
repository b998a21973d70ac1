"""Sample rows: samples as rows of tokens, the batches that a model takes of them, and lengths that fit them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import StepError
from engine.kit.bench.sample_report import SampleOrder
from engine.kit.inputs import random_inputs, samples, token_rows
from engine.kit.inputs.token_rows import Row, RowLimits
from engine.text import lists

if TYPE_CHECKING:
    import numpy as np

    from engine.kit.inputs.tokenizer import Tokenizer
    from engine.kit.onnx.onnx_files import Input
    from engine.recipe.values import Profile

MOST_TEXTS = 512
"""Of a larger file of samples, so many texts are measured; they are spread evenly over the file."""
STEP = 8
"""The lengths of buckets are multiples of 8, as matrix kernels prefer them."""
MOST_BUCKETS = 4
_WORTH = 0.05
"""One bucket more must save at least 5 % of the computed positions."""


@dataclass(frozen=True)
class SampleRows:
    """The samples as rows of tokens, and how rows become the batches that a model takes."""

    rows: Sequence[Row]
    of_texts: int
    tokenizer: Tokenizer
    specs: Mapping[str, Input]
    allowed: Sequence[RowLimits]
    """The limits of the model's profiles; empty for a model that takes a batch of any size."""

    @cached_property
    def lengths(self) -> list[int]:
        """The number of tokens of each row."""
        return [row["input_ids"].shape[1] for row in self.rows]

    def batch(self, indices: Sequence[int]) -> dict[str, np.ndarray]:
        """Return rows as one batch, in which the last row is repeated where profiles need more rows.

        Raises StepError where no profile takes the batch.
        """
        longest = max(self.lengths[index] for index in indices)
        shape = padded_shape(len(indices), longest, self.allowed)
        if shape is None:
            raise StepError(
                f"no profile takes a batch of {lists.counted(len(indices), 'sample')} with up to {longest} tokens",
                [f"profile {number}: {limits}" for number, limits in enumerate(self.allowed)],
                "widen a profile, or measure another batch size",
            )
        rows = [self.rows[index] for index in indices]
        rows += rows[-1:] * (shape[0] - len(rows))
        tensors = token_rows.batch(rows, pad=self.tokenizer.pad, side=self.tokenizer.side, length=shape[1])
        return token_rows.fit(tensors, self.specs)

    def takes(self, size: int) -> bool:
        """Whether the model takes batches of `size` rows of every length."""
        return padded_shape(size, max(self.lengths), self.allowed) is not None

    def batches(self, size: int, order: SampleOrder) -> list[dict[str, np.ndarray]]:
        """Return all samples as batches of `size` rows in an order."""
        return [self.batch(indices) for indices in batches(self.lengths, size, order)]


def read(
    file: Path,
    checkpoint: Path,
    specs: Mapping[str, Input],
    *,
    longest: int | None = None,
    profiles: Sequence[Profile] = (),
) -> SampleRows:
    """Return the samples of a `.jsonl` file as rows, cut to `longest` tokens and to the model's own limit.

    Raises StepError where the file holds no texts, or the model takes no tokens or has no tokenizer.
    """
    tokenizer, own = samples.tokenizer_for(checkpoint, specs, longest)
    texts = samples.texts(file)
    rows = [samples.row_of(texts[index], tokenizer) for index in evenly(len(texts), MOST_TEXTS)]
    allowed = [random_inputs.limits(specs, profile, None) for profile in profiles]
    if not allowed and own.batch[1] is not None:
        allowed = [own]
    return SampleRows(rows, len(texts), tokenizer, specs, allowed)


def batches(lengths: Sequence[int], size: int, order: SampleOrder) -> list[list[int]]:
    """Return the indices of the rows of each batch of `size` rows; the last batch may have fewer rows."""
    indices = list(range(len(lengths)))
    if order == "sorted":
        indices.sort(key=lambda index: lengths[index])  # rows of one length stay in the order of their arrival
    return [indices[start : start + size] for start in range(0, len(indices), size)]


def padded_shape(rows: int, longest: int, allowed: Sequence[RowLimits]) -> tuple[int, int] | None:
    """Return the shape [rows, tokens] to which a batch is padded, with the fewest positions that the model takes.

    `allowed` holds the limits of each profile; a model without limits takes the batch as it is. Returns None where no
    profile takes the batch.
    """
    if not allowed:
        return rows, longest
    shapes = [
        (max(rows, limits.batch[0]), max(longest, limits.sequence[0]))
        for limits in allowed
        if rows <= (limits.batch[1] or rows) and longest <= (limits.sequence[1] or longest)
    ]
    return min(shapes, key=math.prod, default=None)


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
