"""Fidelity: how near a changed model's outputs are to those of the float32 model, on the same inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from engine.kit.accuracy import comparable_outputs, comparison, outputs
from engine.kit.inputs.cases import Case
from engine.kit.quantization.report import Spread
from engine.runtimes.onnxruntime import session as ort

if TYPE_CHECKING:
    import numpy as np
    import onnxruntime

    Model: TypeAlias = onnxruntime.InferenceSession | Callable[[Mapping[str, np.ndarray]], dict[str, np.ndarray]]
    """A session of ONNX Runtime, or the function that runs a model of another runtime."""

_NOT_FINITE = -1.0
"""The cosine of a case for which the changed model gives numbers that are not finite: the lowest possible cosine."""


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

    The outputs are compared as a whole, without pooling; boxes and scores in one output are compared apart. A case
    whose outputs are nearly zero or a single number has no cosine; where no case has a cosine, the cosine is 1.
    """
    divided = comparable_outputs.find(truth, columns=False)
    truth = comparable_outputs.split_cases(truth, divided)
    usual = outputs.usual(truth, pooling=None)
    cosines: list[float] = []
    relative = 0.0
    for case in truth:
        answers = comparable_outputs.split(_run(model, case.inputs), divided)
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
