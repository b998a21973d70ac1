"""Sensitivity: which groups of MatMuls bear few bits, decided by what the model answers without them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.kit.inputs.cases import Case
from engine.kit.quantization import fidelity
from engine.kit.quantization.qdq.matmuls import Group
from engine.kit.quantization.report import Spread

if TYPE_CHECKING:
    import numpy as np
    import onnxruntime

GOAL = 0.995
"""The least cosine, of the worst sample that nothing was made from, at which no more is left out: other texts may be
twice as far from 1 before they are below 0.99."""
LEAST = 0.7
"""The share of the work that is quantized in any case: whoever wants less of it wants fp16."""

Open = Callable[[Collection[Group]], "onnxruntime.InferenceSession"]


@dataclass(frozen=True)
class GroupSelection:
    """The groups to quantize, what they come to, the error that each other one causes alone, and the way there."""

    chosen: tuple[Group, ...]
    cosines: Spread
    left: Mapping[Group, float]
    path: tuple[tuple[tuple[Group, ...], Spread], ...]


def select(
    groups: Sequence[Group],
    shares: Mapping[Group, float],
    opened: Open,
    samples: Sequence[Mapping[str, np.ndarray]],
    *,
    goal: float = GOAL,
    least: float = LEAST,
) -> GroupSelection:
    """Return the groups to quantize: all, or without those that cost the most exactness for their work.

    `shares` are shares of the model's work, `opened` gives a session with the given groups quantized. While the worst
    sample is below `goal`, the group goes that, quantized alone, did the most harm for its work, as long as `least`
    of the work stays (of that of all groups, where they do less). Where the goal cannot be had, the best that was seen
    is taken.
    """
    cases = [Case(str(number), "", "sample", dict(inputs), {}) for number, inputs in enumerate(samples)]
    truth = fidelity.answered(opened(()), cases)
    possible = sum(shares[group] for group in groups)
    floor = least if possible >= least else least * possible
    chosen = list(groups)
    tried = [(tuple(chosen), fidelity.measure(truth, opened(chosen)).cosine)]
    _tell(chosen, shares, tried[-1][1])
    harm: dict[Group, float] = {}
    if tried[-1][1].worst < goal:
        harm = {group: 1 - fidelity.measure(truth, opened((group,))).cosine.worst for group in groups}
    for group in sorted(harm, key=lambda group: -harm[group] / max(shares[group], 1e-9)):
        rest = [other for other in chosen if other != group]
        if sum(shares[other] for other in rest) < floor:
            continue
        chosen = rest
        tried.append((tuple(chosen), fidelity.measure(truth, opened(chosen)).cosine))
        _tell(chosen, shares, tried[-1][1])
        if tried[-1][1].worst >= goal:
            break
    best, cosines = tried[-1] if tried[-1][1].worst >= goal else max(tried, key=lambda each: each[1].worst)
    return GroupSelection(best, cosines, {group: harm[group] for group in groups if group not in best}, tuple(tried))


def _tell(chosen: Sequence[Group], shares: Mapping[Group, float], cosines: Spread) -> None:
    share = sum(shares[group] for group in chosen)
    print(f"{share:.1%} of the work quantized: cosine {cosines.worst:.5f} at worst, {cosines.mean:.5f} in the mean")
