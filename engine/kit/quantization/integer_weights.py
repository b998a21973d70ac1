"""Integer weights: a weight in int8, with a scale for each of its output channels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

_LARGEST, _REDUCED = 127, 63
"""The largest integer of 8 bits, and of 7 bits."""
_CHUNK = 4 << 20
"""The number of elements of a weight that are rounded at once."""


def by_column(weight: np.ndarray, *, reduce_range: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the integers of a weight [input, output], int8, and the scales of its columns, float32 [output].

    The scale of a column maps the column's largest absolute value to the largest integer, so the zero point is 0.
    """
    import numpy as np

    most = _REDUCED if reduce_range else _LARGEST
    largest = np.zeros(weight.shape[1], np.float32)
    for rows in _chunks(weight):
        largest = np.maximum(largest, np.abs(weight[rows]).max(axis=0, initial=0))
    scales = np.where(largest > 0, largest / np.float32(most), np.float32(1)).astype(np.float32)
    integers = np.empty(weight.shape, np.int8)
    for rows in _chunks(weight):
        integers[rows] = np.clip(np.rint(weight[rows] / scales), -most, most)
    return integers, scales


def _chunks(weight: np.ndarray) -> Iterator[slice]:
    rows = max(1, _CHUNK // max(1, weight.shape[1]))
    return (slice(start, start + rows) for start in range(0, len(weight), rows))
