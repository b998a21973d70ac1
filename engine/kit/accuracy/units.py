"""Units: the columns of an output that hold different quantities, such as pixels, scores and numbers of classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

MOST = 16
"""The largest number of columns that may hold different quantities; a vector with more columns is an embedding."""
_APART = 20.0
"""Two groups of columns hold different quantities where the numbers of one group are so many times larger."""
_WHOLE = 2.0
"""Whole numbers are numbers of classes where they differ by at least this number; flags are 0 or 1."""


def divide(columns: Sequence[np.ndarray]) -> list[tuple[int, ...]]:
    """Return the indices of columns in groups, so that the columns of a group hold about equal quantities.

    A detector with its own selection of boxes, for example, gives rows of four coordinates in pixels, a score and the
    number of a class. A price and a probability may also stand side by side. Whole numbers are a group. All other
    columns are ordered by their largest numbers, and divided where these numbers lie far apart; columns of numbers from
    0 to 1 count as equally large, because they are probabilities.
    """
    whole = [index for index, values in enumerate(columns) if _counts(values)]
    if len(whole) == len(columns):
        whole = []
    rest = [index for index in range(len(columns)) if index not in whole]
    most = max((_largest(columns[index]) for index in rest), default=0.0)
    sizes = {index: _size(columns[index], most) for index in rest}
    groups: list[list[int]] = []
    for index in sorted(rest, key=lambda index: -sizes[index]):
        if not groups or sizes[index] * _APART < sizes[groups[-1][-1]]:
            groups.append([])
        groups[-1].append(index)
    return [tuple(sorted(group)) for group in (*groups, whole) if group]


def _counts(values: np.ndarray) -> bool:
    """Whether a column holds whole numbers that are no flags."""
    import numpy as np

    return bool(values.size and (values == np.round(values)).all() and np.ptp(values) >= _WHOLE)


def _size(values: np.ndarray, most: float) -> float:
    """Return the largest absolute value of a column, or `most` for a column of zeros.

    A column of probabilities has the size 1 beside much larger columns, and `most` beside other columns.
    """
    largest = _largest(values)
    if not largest:
        return most
    return (1.0 if most > _APART else most) if values.min() >= 0 and largest <= 1 else largest


def _largest(values: np.ndarray) -> float:
    return float(abs(values).max(initial=0))
