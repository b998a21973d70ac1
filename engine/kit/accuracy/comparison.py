"""Comparison: how far a built model's outputs lie from the original's, case by case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.errors import StepError
from engine.kit.accuracy import agreement
from engine.kit.accuracy.outputs import Usual, positions, vectors

if TYPE_CHECKING:
    import numpy as np

    from engine.kit.checkpoints.sentences import Pooling
    from engine.kit.inputs.cases import Case


@dataclass(frozen=True)
class Distance:
    """One case: how far the built model is from the original.

    `cosine` is the worst over the rows of the case, None where no row has a direction. `max_abs` is the largest
    absolute difference and `relative` the largest as a share of the output's largest value in any case. `choices` are
    the decisions that were compared, `changed` those that differ by more than a near tie.
    """

    cosine: float | None
    max_abs: float
    relative: float
    choices: int = 0
    changed: int = 0


def distance(
    case: Case, built: Mapping[str, np.ndarray], *, pooling: Pooling | None, usual: Mapping[str, Usual]
) -> Distance | None:
    """Compare the outputs of one case; None where the built model gives numbers that are not finite.

    Only real positions count: those that the attention mask shows. Where the model embeds texts, by `pooling`, the
    cosine is that of the pooled vectors. `usual` is how large outputs are over all cases (`outputs.usual`).
    Raises StepError where outputs are missing or of another shape.
    """
    cosines: list[float] = []
    worst = relative = 0.0
    made = changed = 0
    for name, original in case.outputs.items():
        answer = _answer(case, name, original, built)
        real = positions(name, original, case.inputs)
        first, second = (each.ravel() if real is None else each[real].ravel() for each in (original, answer))
        if not _comparable(first, second):
            return None
        error = _error(first, second)
        worst, relative = max(worst, error), max(relative, error / (usual[name].largest or 1.0))
        rows = [vectors(name, each, case.inputs, pooling=pooling) for each in (original, answer)]
        cosines += _cosines(*rows, faint=usual[name].faint)
        if pooling is None:
            counted = agreement.compare(name, original, answer, real)
            made, changed = made + counted[0], changed + counted[1]
    return Distance(min(cosines, default=None), worst, relative, made, changed)


def _answer(case: Case, name: str, original: np.ndarray, built: Mapping[str, np.ndarray]) -> np.ndarray:
    if name not in built:
        raise StepError(f"The built model has no output {name}", [f"it has: {', '.join(built)}"])
    if built[name].shape != original.shape:
        raise StepError(
            f"The built model gives {name} another shape",
            [f"case {case.name}: {list(built[name].shape)} instead of {list(original.shape)}"],
        )
    return built[name]


def _comparable(original: np.ndarray, built: np.ndarray) -> bool:
    """Whether what is finite in the original is finite in the built output, too, and what is not is the same."""
    import numpy as np

    if original.dtype.kind != "f" or built.dtype.kind != "f":
        return True
    odd = ~np.isfinite(original)
    return bool(np.isfinite(built[~odd]).all() and np.array_equal(original[odd], built[odd], equal_nan=True))


def _error(original: np.ndarray, built: np.ndarray) -> float:
    """Return the largest absolute difference; 0 or 1 for what is no number."""
    import numpy as np

    if original.dtype.kind not in "fiub":
        return float(not np.array_equal(original, built))
    first, second = original.astype(np.float64), built.astype(np.float64)
    finite = np.isfinite(first)
    return float(abs(first[finite] - second[finite]).max(initial=0))


def _cosines(original: Sequence[np.ndarray], built: Sequence[np.ndarray], *, faint: float) -> list[float]:
    import numpy as np

    found = []
    for first, second in zip(original, built, strict=True):
        finite = np.isfinite(first)
        a, b = first[finite], second[finite]
        if len(a) < 2 or 0 < np.linalg.norm(a) < faint:  # noqa: PLR2004 - one number has a sign, not a direction
            continue
        length = float(np.linalg.norm(a) * np.linalg.norm(b))
        found.append(float(a @ b) / length if length else float(np.array_equal(a, b)))
    return found
