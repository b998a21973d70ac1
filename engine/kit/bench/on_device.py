"""On device: adds the times of one call on the GPU to the rows of contenders that can measure them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    from engine.kit.bench.budgets import TimedRow
    from engine.kit.bench.interleaving import Contender


def added(
    timed: Sequence[TimedRow], contenders: Sequence[Contender], inputs: Mapping[str, np.ndarray]
) -> list[TimedRow]:
    """Return the rows with the device times of their contenders, which have the order of the rows.

    The device times are measured behind the turns, so that they disturb no latency.
    """
    rows = []
    for (row, rounds), contender in zip(timed, contenders, strict=True):
        if contender.device_times is None:
            rows.append((row, rounds))
            continue
        with contender.active():
            rows.append((replace(row, device=contender.device_times(inputs)), rounds))
    return rows
