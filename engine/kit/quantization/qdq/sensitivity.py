"""Sensitivity: which layers tolerate few bits, by the outputs of the model with each group of layers quantized."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from engine.kit.quantization import fidelity
from engine.kit.quantization.report import Spread

if TYPE_CHECKING:
    import numpy as np

GOAL = 0.995
"""The cosine that the worst held-out sample must reach before the search ends.

Even if a text outside the samples has a cosine twice as far from 1 as the worst sample's, that cosine is at least 0.99.
"""
LEAST = 0.7
"""Lower limit of the quantized layers' share of all counted multiplications in the search.

If a smaller share were quantized, fp16 would be the better precision for the model.
"""

_LEAST_SHARE = 1e-9
"""The number that replaces a group's share of 0, because the error of a group is divided by the group's share."""

SENSITIVE = "sensitive: quantized alone, it does the most harm for its share of the work"
"""The reason why a layer that could be quantized is left out."""

G = TypeVar("G")
"""The type of a group: layers that are quantized together, such as the MatMuls that read one tensor."""


@dataclass(frozen=True)
class GroupSelection(Generic[G]):
    """The groups to quantize, the cosines of the model with them, the error of each group left out, and all tries.

    The error of a group is measured with only the group quantized.
    """

    chosen: tuple[G, ...]
    cosines: Spread
    left: Mapping[G, float]
    path: tuple[tuple[tuple[G, ...], Spread], ...]


def select(
    groups: Sequence[G],
    shares: Mapping[G, float],
    opened: Callable[[Collection[G]], fidelity.Model],
    samples: Sequence[Mapping[str, np.ndarray]],
    *,
    goal: float = GOAL,
    least: float = LEAST,
) -> GroupSelection[G]:
    """Return the groups to quantize: all groups, or all without the most sensitive ones.

    `shares` maps each group of layers to the group's share of all counted multiplications. `opened` returns the
    model with the given groups quantized. While the cosine of the worst sample is below `goal`,
    the group with the largest ratio of error to share is left out; the error of a group is measured with only that
    group quantized. The quantized groups keep at least the share `least` of all multiplications. Where all groups
    together have less than the share `least`, the quantized groups keep at least the share `least` of the groups'
    multiplications. Where no try reaches the goal, the try with the best worst cosine is returned.
    """
    truth = fidelity.answered(opened(()), fidelity.cases(samples))
    total = sum(shares[group] for group in groups)
    floor = least if total >= least else least * total
    chosen = list(groups)
    tried = [(tuple(chosen), fidelity.measure(truth, opened(chosen)).cosine)]
    _print(chosen, shares, tried[-1][1])
    harm: dict[G, float] = {}
    if tried[-1][1].worst < goal:
        harm = {group: 1 - fidelity.measure(truth, opened((group,))).cosine.worst for group in groups}
    for group in sorted(harm, key=lambda group: -harm[group] / max(shares[group], _LEAST_SHARE)):
        rest = [other for other in chosen if other != group]
        if sum(shares[other] for other in rest) < floor:
            continue
        chosen = rest
        tried.append((tuple(chosen), fidelity.measure(truth, opened(chosen)).cosine))
        _print(chosen, shares, tried[-1][1])
        if tried[-1][1].worst >= goal:
            break
    best, cosines = tried[-1] if tried[-1][1].worst >= goal else max(tried, key=lambda each: each[1].worst)
    return GroupSelection(best, cosines, {group: harm[group] for group in groups if group not in best}, tuple(tried))


def _print(chosen: Sequence[G], shares: Mapping[G, float], cosines: Spread) -> None:
    share = sum(shares[group] for group in chosen)
    print(f"{share:.1%} of the work quantized: cosine {cosines.worst:.5f} at worst, {cosines.mean:.5f} in the mean")
