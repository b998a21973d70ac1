"""Fidelity: how near a changed model's outputs are to float32's, and which layers tolerate few bits by it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

from engine.kit.accuracy import comparable_outputs, comparison, outputs
from engine.kit.accuracy.detections import Detector
from engine.kit.inputs.cases import Case
from engine.kit.quantization.report import QdqTry, Spread
from engine.runtimes.onnxruntime import session as ort

if TYPE_CHECKING:
    import numpy as np
    import onnxruntime

    Model: TypeAlias = onnxruntime.InferenceSession | Callable[[Mapping[str, np.ndarray]], dict[str, np.ndarray]]
    """A session of ONNX Runtime, or the function that runs a model of another runtime."""

_NOT_FINITE = -1.0
"""The cosine of a case for which the changed model gives numbers that are not finite: the lowest possible cosine."""
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
class Fidelity:
    """The cosine between a changed model's outputs and the float32 model's, and the largest error over all cases.

    `relative` is the largest error as a share of the largest value of the output; infinite where an output is not
    finite.
    """

    cosine: Spread
    relative: float


def cases(samples: Sequence[Mapping[str, np.ndarray]]) -> list[Case]:
    """Return samples as cases without outputs."""
    return [Case(str(number), "", "sample", dict(inputs), {}) for number, inputs in enumerate(samples)]


def answered(model: Model, unanswered: Sequence[Case]) -> list[Case]:
    """Return cases with the outputs that a model gives for their inputs."""
    return [replace(case, outputs=_run(model, case.inputs)) for case in unanswered]


def _run(model: Model, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return model(inputs) if callable(model) else ort.run(model, inputs)


def measure(truth: Sequence[Case], model: Model) -> Fidelity:
    """Return how near the outputs of a model come to the outputs stored in the cases.

    The outputs are compared as a whole, without pooling; boxes and scores in one output are compared apart, and
    queries of a detector in the original's order. A case whose outputs are nearly zero or a single number has no
    cosine; where no case has a cosine, the cosine is 1.
    """
    detector = Detector.of(truth)
    originals = [case.outputs for case in truth]
    divided = comparable_outputs.find(truth, columns=False)
    truth = comparable_outputs.split_cases(truth, divided)
    usual = outputs.usual(truth, pooling=None)
    cosines: list[float] = []
    relative = 0.0
    for case, original in zip(truth, originals, strict=True):
        answers = _run(model, case.inputs)
        answers = comparable_outputs.split(
            answers if detector is None else detector.aligned(original, answers), divided
        )
        distance = comparison.distance(case, answers, pooling=None, usual=usual)
        if distance is None:
            cosines.append(_NOT_FINITE)
            relative = float("inf")
            continue
        relative = max(relative, distance.relative)
        if distance.cosine is not None:
            cosines.append(distance.cosine)
    if not cosines:
        return Fidelity(Spread(1.0, 1.0), relative)
    return Fidelity(Spread(min(cosines), sum(cosines) / len(cosines)), relative)


@dataclass(frozen=True)
class GroupSelection(Generic[G]):
    """The groups to quantize, the cosines of the model with them, the error of each group left out, and all tries.

    The error of a group is measured with only the group quantized. `shares` are those of all groups.
    """

    chosen: tuple[G, ...]
    cosines: Spread
    left: Mapping[G, float]
    path: tuple[tuple[tuple[G, ...], Spread], ...]
    shares: Mapping[G, float]

    @property
    def share(self) -> float:
        """The quantized share of all counted multiplications, as reports show it."""
        return self._share(self.chosen)

    @property
    def tries(self) -> tuple[QdqTry, ...]:
        """All tries as reports show them."""
        return tuple(QdqTry(self._share(chosen), **vars(cosines.rounded())) for chosen, cosines in self.path)

    def _share(self, chosen: Sequence[G]) -> float:
        return round(sum(self.shares[group] for group in chosen), 4)


def selected(
    groups: Sequence[G],
    shares: Mapping[G, float],
    opened: Callable[[Collection[G]], Model],
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
    truth = answered(opened(()), cases(samples))
    total = sum(shares[group] for group in groups)
    floor = least if total >= least else least * total
    chosen = list(groups)
    tried = [(tuple(chosen), measure(truth, opened(chosen)).cosine)]
    _print(chosen, shares, tried[-1][1])
    harm: dict[G, float] = {}
    if tried[-1][1].worst < goal:
        harm = {group: 1 - measure(truth, opened((group,))).cosine.worst for group in groups}
    for group in sorted(harm, key=lambda group: -harm[group] / max(shares[group], _LEAST_SHARE)):
        rest = [other for other in chosen if other != group]
        if sum(shares[other] for other in rest) < floor:
            continue
        chosen = rest
        tried.append((tuple(chosen), measure(truth, opened(chosen)).cosine))
        _print(chosen, shares, tried[-1][1])
        if tried[-1][1].worst >= goal:
            break
    best, cosines = tried[-1] if tried[-1][1].worst >= goal else max(tried, key=lambda each: each[1].worst)
    left = {group: harm[group] for group in groups if group not in best}
    return GroupSelection(best, cosines, left, tuple(tried), shares)


def _print(chosen: Sequence[G], shares: Mapping[G, float], cosines: Spread) -> None:
    share = sum(shares[group] for group in chosen)
    print(f"{share:.1%} of the work quantized: cosine {cosines.worst:.5f} at worst, {cosines.mean:.5f} in the mean")
