"""Comparison: the distance of a built model's outputs from the original's, case by case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.errors import StepError
from engine.kit.accuracy import agreement
from engine.kit.accuracy.agreement import NO_CHOICES, Choices
from engine.kit.accuracy.outputs import ROUNDING, Usual, compared, positions, rows, vectors

if TYPE_CHECKING:
    import numpy as np

    from engine.kit.checkpoints.sentences import Pooling
    from engine.kit.inputs.cases import Case


@dataclass(frozen=True)
class Distance:
    """The distance of the built model from the original in one output of one case, or in all outputs of a case."""

    cosine: float | None
    """The smallest cosine between a row of the built model and the original's; None where no row has a direction."""
    max_abs: float
    """The largest absolute difference between a number of the built model and the same number of the original."""
    relative: float
    """The largest absolute difference beyond rounding, as a share of the output's usual size (`Usual.scale`)."""
    choices: Choices = NO_CHOICES
    """The choices in which the built model was compared with the original."""


def distance(
    case: Case, built: Mapping[str, np.ndarray], *, pooling: Pooling | None, usual: Mapping[str, Usual]
) -> Distance | None:
    """Return the distance of one case over all outputs; None where `of_output` returns None for one of the outputs.

    Raises StepError where an output of the built model is missing, or has a different shape than the original's output.
    """
    answers = {name: answer(case, name, built) for name in case.outputs}
    every = [of_output(name, case, answers[name], pooling=pooling, usual=usual[name]) for name in answers]
    measured = [each for each in every if each is not None]
    if len(measured) < len(every):
        return None
    return Distance(
        min((each.cosine for each in measured if each.cosine is not None), default=None),
        max((each.max_abs for each in measured), default=0.0),
        max((each.relative for each in measured), default=0.0),
        sum((each.choices for each in measured), NO_CHOICES),
    )


def of_output(name: str, case: Case, built: np.ndarray, *, pooling: Pooling | None, usual: Usual) -> Distance | None:
    """Return the distance of one output; None where one model gives NaN or infinity and the other another value.

    Only positions with 1 in the attention mask are compared. With `pooling`, the cosine compares pooled vectors.
    `usual` is the output's usual size over all cases, as `outputs.usual` returns it.
    """
    original = case.outputs[name]
    first, second = (compared(name, each, case.inputs).ravel() for each in (original, built))
    if not _comparable(first, second):
        return None
    error = _error(first, second)
    relative = error / usual.scale if error > ROUNDING * max(1.0, usual.largest) else 0.0
    pairs = [vectors(name, each, case.inputs, pooling=pooling) for each in (original, built)]
    cosines = [] if usual.is_near_zero else _cosines(*pairs, faint=usual.faint)
    choices = _choices(name, case, built) if pooling is None else NO_CHOICES
    return Distance(min(cosines, default=None), error, relative, choices)


def _choices(name: str, case: Case, built: np.ndarray) -> Choices:
    original, kept = case.outputs[name], rows(case.inputs)
    real = positions(name, original, case.inputs)
    if kept is not None and original.shape[:1] == kept.shape:
        original, built, real = original[kept], built[kept], None if real is None else real[kept]
    return agreement.compare(name, original, built, real)


def other_sizes(case: Case, built: Mapping[str, np.ndarray]) -> list[str]:
    """Return the case with both shapes of each output that has the right number of axes, but another size.

    The number of rows may depend on the values: a detector that selects boxes may find one box less.
    """
    shapes = [(name, built[name].shape, output.shape) for name, output in case.outputs.items() if name in built]
    return [
        f"{case.name} ({name}: {list(own)} instead of {list(original)})"
        for name, own, original in shapes
        if own != original and len(own) == len(original)
    ]


def answer(case: Case, name: str, built: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return the built model's output `name`.

    Raises StepError where the built model lacks the output, or gives the output another shape than the original does.
    """
    if name not in built:
        raise StepError(f"The built model has no output {name}", [f"it has: {', '.join(built)}"])
    if built[name].shape != case.outputs[name].shape:
        raise StepError(
            f"The built model gives {name} another shape",
            [f"case {case.name}: {list(built[name].shape)} instead of {list(case.outputs[name].shape)}"],
        )
    return built[name]


def _comparable(original: np.ndarray, built: np.ndarray) -> bool:
    """Whether `built` is finite wherever `original` is finite, and equals `original` wherever `original` is not."""
    import numpy as np

    if original.dtype.kind != "f" or built.dtype.kind != "f":
        return True
    odd = ~np.isfinite(original)
    return bool(np.isfinite(built[~odd]).all() and np.array_equal(original[odd], built[odd], equal_nan=True))


def _error(original: np.ndarray, built: np.ndarray) -> float:
    """Return the largest absolute difference; for outputs that are no numbers, 0 where they are equal, else 1."""
    import numpy as np

    if original.dtype.kind not in "fiub":
        return float(not np.array_equal(original, built))
    first, second = original.astype(np.float64), built.astype(np.float64)
    finite = np.isfinite(first)
    return float(abs(first[finite] - second[finite]).max(initial=0))


def _cosines(original: Sequence[np.ndarray], built: Sequence[np.ndarray], *, faint: float) -> list[float]:
    """Return the cosine of each pair of vectors, without pairs whose original vector is shorter than `faint`."""
    import numpy as np

    cosines = []
    for first, second in zip(original, built, strict=True):
        finite = np.isfinite(first)
        a, b = first[finite], second[finite]
        if len(a) < 2 or 0 < np.linalg.norm(a) < faint:  # noqa: PLR2004 - one number has a sign, not a direction
            continue
        length = float(np.linalg.norm(a) * np.linalg.norm(b))
        cosines.append(float(a @ b) / length if length else float(np.array_equal(a, b)))
    return cosines
