"""Shortened: samples of text cut to a few tokens, since the shortest texts have outliers of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

_LENGTHS = (1, 2, 3, 4)
"""Tokens between the first and the last, which frame a text."""


def with_some(samples: Sequence[Mapping[str, np.ndarray]], *, every: int) -> list[Mapping[str, np.ndarray]]:
    """Return the samples, and after one in `every` a copy of it with its first few tokens and its last.

    In few tokens some channels become many times as large as in any longer text, and samples seldom have such texts:
    on all-MiniLM-L6-v2 what was calibrated without them was worst at "No." and "Great!". What is no text, is padded,
    or is short already gets no copy.
    """
    made: list[Mapping[str, np.ndarray]] = []
    lengths = 0
    for number, sample in enumerate(samples):
        made.append(sample)
        length = _LENGTHS[lengths % len(_LENGTHS)]
        if number % every == every - 1 and _can_be_cut(sample, length):
            made.append(_cut(sample, length))
            lengths += 1
    return made


def _can_be_cut(sample: Mapping[str, np.ndarray], length: int) -> bool:
    ids = sample.get("input_ids")
    if ids is None or ids.ndim != 2 or ids.shape[1] <= length + 2:  # noqa: PLR2004  [batch, sequence]; its frame
        return False
    mask = sample.get("attention_mask")
    return (mask is None or bool(mask.all())) and all(array.shape == ids.shape for array in sample.values())


def _cut(sample: Mapping[str, np.ndarray], length: int) -> dict[str, np.ndarray]:
    import numpy as np

    return {name: np.concatenate([array[:, : length + 1], array[:, -1:]], axis=1) for name, array in sample.items()}
