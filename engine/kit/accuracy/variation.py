"""Variation: how much of the difference between the original's answers the built model reproduces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.kit.accuracy.outputs import ROUNDING, vectors
from engine.kit.inputs.cases import Case

if TYPE_CHECKING:
    import numpy as np

    from engine.kit.checkpoints.sentences import Pooling

    Pair = tuple[Case, np.ndarray]
    """A case with an output of the original, and the built model's answer."""

_CONSTANT = 1e-5
"""An output is constant where its values differ by less than this share of their size, which float32 cannot compute."""
RANKED = 8
"""The least number of single numbers whose order is compared; the order of fewer numbers says little."""


@dataclass(frozen=True)
class Variation:
    """The variation of one output over all cases.

    `share` is the share of the original's variation that the built model reproduces: 1 minus the sum of squared errors
    as a share of the sum of squared distances from the mean. The value is 0 for a model that always gives the mean, and
    below 0 for a worse model. `rank` is Spearman's rank correlation, for outputs with one number per row.
    """

    share: float
    rank: float | None = None


def of_output(name: str, pairs: Sequence[Pair], *, pooling: Pooling | None) -> Variation | None:
    """Return the variation of an output; None where the original's answers do not vary, or where there is one answer.

    Values that are not finite in the original are left out.
    """
    import numpy as np

    if not pairs or pairs[0][1].dtype.kind != "f":
        return None
    sizes = {row.size for first, _ in _rows(name, pairs, pooling) for row in (first,)}
    single = len(sizes) != 1
    mean, count = _mean(name, pairs, pooling, single=single)
    if count < 2:  # noqa: PLR2004 - one answer does not vary
        return None
    error = deviation = size = 0.0
    for original, built in _rows(name, pairs, pooling):
        finite = np.isfinite(original)
        centre = mean if single else mean[finite]
        error += float(((original[finite] - built[finite]) ** 2).sum())
        deviation += float(((original[finite] - centre) ** 2).sum())
        size += float((original[finite] ** 2).sum())
    numbers = count * (1 if single else next(iter(sizes)))
    if deviation <= max(_CONSTANT**2 * size, numbers * ROUNDING**2):
        return None
    return Variation(1 - error / deviation, _rank(name, pairs, pooling) if sizes == {1} else None)


def _rows(name: str, pairs: Sequence[Pair], pooling: Pooling | None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    for case, built in pairs:
        both = (vectors(name, each, case.inputs, pooling=pooling) for each in (case.outputs[name], built))
        yield from zip(*both, strict=True)


def _mean(name: str, pairs: Sequence[Pair], pooling: Pooling | None, *, single: bool) -> tuple[np.ndarray, int]:
    """Return the mean of the original's rows and the number of rows; with `single`, the mean and number of all values.

    Rows of different lengths have only one mean of all their values.
    """
    import numpy as np

    total: np.ndarray = np.zeros(())
    counts: np.ndarray = np.zeros(())
    for original, _ in _rows(name, pairs, pooling):
        finite = np.isfinite(original)
        values = np.where(finite, original, 0)
        total = total + (values.sum() if single else values)
        counts = counts + (finite.sum() if single else finite)
    return total / np.maximum(counts, 1), int(counts.max(initial=0))


def _rank(name: str, pairs: Sequence[Pair], pooling: Pooling | None) -> float | None:
    """Return Spearman's rank correlation of single numbers; None for fewer than `RANKED` numbers."""
    import numpy as np

    both = [(float(first[0]), float(second[0])) for first, second in _rows(name, pairs, pooling)]
    numbers = np.array([pair for pair in both if np.isfinite(pair).all()])
    if len(numbers) < RANKED:
        return None
    first, second = (_ranks(column) for column in numbers.T)
    lengths = float(np.linalg.norm(first) * np.linalg.norm(second))
    return float(first @ second) / lengths if lengths else 0.0


def _ranks(values: np.ndarray) -> np.ndarray:
    """Return the ranks of values, less the mean rank. Equal values have the mean of their ranks."""
    import numpy as np

    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = counts.cumsum()
    means = ends - (counts - 1) / 2
    ranks = means[places]
    return np.asarray(ranks - ranks.mean())
