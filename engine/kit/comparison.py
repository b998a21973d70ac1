"""Comparison: how far a built model's outputs lie from the original's, case by case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.errors import StepError
from engine.kit.pooling import Pooling, normalise, pool
from engine.kit.stats import median

if TYPE_CHECKING:
    import numpy as np

    from engine.kit.cases import Case

NEAR_TIE = 0.05
"""A choice counts as the same where the original values it this much worse at most, as a share of its largest logit.

The share is fixed and not taken from the measured error: a broken model must not excuse itself by being far off.
"""
NEAR_NEIGHBOURS = 0.02
"""The same for nearest neighbours, in cosine: so close, which of two texts is the nearer one is no fact."""

FAINT = 0.25
"""Logits shorter than this share of the usual length have no direction to speak of: the sample is borderline, and a
small error turns them round. Their error still counts as such."""

_SPANS = frozenset({"start_logits", "end_logits"})
"""Logits over the positions themselves, [batch, sequence]."""
_NEIGHBOURS = 3
"""Texts from which on one has a choice of neighbours."""


@dataclass(frozen=True)
class Distance:
    """One case: how far the built model is from the original.

    `cosine` is the worst over the rows of the case, None where no row has a direction. `max_abs` is the largest
    absolute difference and `relative` the same as a share of the original's largest value (of 1 where that is
    smaller). `choices` are the argmaxes that were compared, `changed` those that differ by more than a near tie.
    """

    cosine: float | None
    max_abs: float
    relative: float
    choices: int = 0
    changed: int = 0


def distance(
    case: Case, built: Mapping[str, np.ndarray], *, pooling: Pooling | None, usual: Mapping[str, float]
) -> Distance | None:
    """Compare the outputs of one case; None where the built model gives numbers that are not finite.

    Only real positions count: those that the attention mask shows. Where the model embeds texts, by `pooling`, the
    cosine is that of the pooled vectors. `usual` are the `usual_lengths` of all cases.
    Raises StepError where outputs are missing or of another shape.
    """
    cosines: list[float] = []
    errors: list[tuple[float, float]] = []
    choices = changed = 0
    for name, original in case.outputs.items():
        answer = _answer(case, name, original, built)
        real = positions(name, original, case.inputs)
        first, second = _flat(original, real), _flat(answer, real)
        if not _comparable(first, second):
            return None
        errors.append(_error(first, second))
        rows = [vectors(name, each, case.inputs, pooling=pooling) for each in (original, answer)]
        cosines += _cosines(*rows, faint=FAINT * usual.get(name, 0.0))
        if pooling is None:
            counted = _choices(name, original, answer, real)
            choices, changed = choices + counted[0], changed + counted[1]
    worst = max((error for error, _ in errors), default=0.0)
    relative = max((error / scale for error, scale in errors), default=0.0)
    return Distance(min(cosines, default=None), worst, relative, choices, changed)


def positions(name: str, output: np.ndarray, inputs: Mapping[str, np.ndarray]) -> np.ndarray | None:
    """Return which positions of an output are real, bool [batch, sequence]; None where it has no positions."""
    mask = inputs.get("attention_mask")
    if mask is None or output.shape[:2] != mask.shape or not (output.ndim > mask.ndim or name in _SPANS):
        return None
    return mask.astype(bool)


def usual_lengths(cases: Sequence[Case], *, pooling: Pooling | None) -> dict[str, float]:
    """Return the median length (Euclidean norm) of each output's vectors in the original."""
    import numpy as np

    lengths: dict[str, list[float]] = {}
    for case in cases:
        for name, output in case.outputs.items():
            rows = vectors(name, output, case.inputs, pooling=pooling)
            lengths.setdefault(name, []).extend(float(np.linalg.norm(row[np.isfinite(row)])) for row in rows)
    return {name: median(found) for name, found in lengths.items() if found}


def vectors(
    name: str, output: np.ndarray, inputs: Mapping[str, np.ndarray], *, pooling: Pooling | None
) -> list[np.ndarray]:
    """Return what a cosine is taken of: a float64 vector per row, pooled where the model embeds texts."""
    import numpy as np

    if output.dtype.kind not in "fiu":
        return []
    real = positions(name, output, inputs)
    if real is not None:
        if pooling is not None:
            return list(pool(output, real, pooling))
        return [row[kept].astype(np.float64).ravel() for row, kept in zip(output, real, strict=True)]
    sizes = {array.shape[:1] for array in inputs.values()}
    batched = output.ndim > 1 and sizes == {output.shape[:1]}
    return [row.astype(np.float64).ravel() for row in (output if batched else output[None])]


def neighbours(cases: Sequence[Case], built: Sequence[Mapping[str, np.ndarray]], pooling: Pooling) -> dict[str, bool]:
    """Return for each text alone whether its nearest neighbour among the others stays the same; {} below three texts.

    Cases that pad texts into a batch are left out: their nearest neighbour would be the same text, unpadded.
    """
    import numpy as np

    names: list[str] = []
    ours: list[np.ndarray] = []
    theirs: list[np.ndarray] = []
    for case, outputs in zip(cases, built, strict=True):
        if case.kind not in {"sample", "random", "tensors"}:
            continue
        name = next(iter(case.outputs))
        kept = slice(1) if case.kind == "sample" else slice(None)  # a model of a fixed batch gets one text repeated
        rows = vectors(name, case.outputs[name], case.inputs, pooling=pooling)[kept]
        theirs += rows
        ours += vectors(name, outputs[name], case.inputs, pooling=pooling)[kept]
        names += [case.name] * len(rows)
    if len(names) < _NEIGHBOURS or len({row.shape for row in theirs}) > 1:
        return {}
    original, changed = (_similarities(normalise(np.stack(rows))) for rows in (theirs, ours))
    chosen = changed.argmax(axis=1)
    loss = original.max(axis=1) - original[np.arange(len(names)), chosen]
    same: dict[str, bool] = {}
    for name, lost in zip(names, loss, strict=True):
        same[name] = same.get(name, True) and bool(lost <= NEAR_NEIGHBOURS)
    return same


def predicted(output: np.ndarray) -> int | None:
    """Return the class of a sample from its logits, [batch, classes]; None where that is not what they are."""
    logits = output.ndim == 2 and output.shape[1] > 1 and output.dtype.kind == "f"  # noqa: PLR2004
    return int(output[0].argmax()) if logits else None


def _answer(case: Case, name: str, original: np.ndarray, built: Mapping[str, np.ndarray]) -> np.ndarray:
    if name not in built:
        raise StepError(f"The built model has no output {name}", [f"it has: {', '.join(built)}"])
    if built[name].shape != original.shape:
        raise StepError(
            f"The built model gives {name} another shape",
            [f"case {case.name}: {list(built[name].shape)} instead of {list(original.shape)}"],
        )
    return built[name]


def _flat(output: np.ndarray, real: np.ndarray | None) -> np.ndarray:
    return output.ravel() if real is None else output[real].ravel()


def _comparable(original: np.ndarray, built: np.ndarray) -> bool:
    """Whether what is finite in the original is finite in the built output, too, and what is not is the same."""
    import numpy as np

    if original.dtype.kind != "f" or built.dtype.kind != "f":
        return True
    odd = ~np.isfinite(original)
    return bool(np.isfinite(built[~odd]).all() and np.array_equal(original[odd], built[odd], equal_nan=True))


def _error(original: np.ndarray, built: np.ndarray) -> tuple[float, float]:
    """Return the largest absolute difference and the size that it is to be seen against."""
    import numpy as np

    if original.dtype.kind not in "fiub":
        return float(not np.array_equal(original, built)), 1.0
    first, second = original.astype(np.float64), built.astype(np.float64)
    finite = np.isfinite(first)
    if not finite.any():
        return 0.0, 1.0
    return float(abs(first[finite] - second[finite]).max()), max(1.0, float(abs(first[finite]).max()))


def _cosines(original: Sequence[np.ndarray], built: Sequence[np.ndarray], *, faint: float) -> list[float]:
    import numpy as np

    found = []
    for first, second in zip(original, built, strict=True):
        finite = np.isfinite(first)
        if finite.sum() < 2:  # noqa: PLR2004 - one number has a sign, not a direction
            continue
        a, b = first[finite], second[finite]
        if 0 < np.linalg.norm(a) < faint:
            continue
        length = float(np.linalg.norm(a) * np.linalg.norm(b))
        found.append(float(a @ b) / length if length else float(np.array_equal(a, b)))
    return found


def _choices(name: str, original: np.ndarray, built: np.ndarray, real: np.ndarray | None) -> tuple[int, int]:
    """Return how many choices an output makes, and how many the built model makes differently, near ties apart."""
    import numpy as np

    if original.dtype.kind in "iub":
        rows = original.reshape(len(original), -1) if original.ndim else original.reshape(1, 1)
        same = (rows == built.reshape(rows.shape)).all(axis=1)
        return len(same), int((~same).sum())
    if original.dtype.kind != "f":
        return 0, 0
    if real is None:
        logits = original.ndim == 2 and original.shape[1] > 1  # noqa: PLR2004 - [batch, classes]
        first, second = (original, built) if logits else (None, None)
    elif name in _SPANS:
        first, second = (np.where(real, each, -np.inf) for each in (original, built))
    else:
        first, second = original[real], built[real]
        first, second = (each.reshape(len(each), -1) for each in (first, second))
    if first is None or second is None or first.shape[1] < 2:  # noqa: PLR2004 - nothing to choose from
        return 0, 0
    best, chosen = first.argmax(axis=1), second.argmax(axis=1)
    row = np.arange(len(first))
    scale = np.where(np.isfinite(first), abs(first), 0).max(axis=1)
    lost = np.where(best == chosen, 0, first[row, best] - first[row, chosen])
    return len(first), int((lost > NEAR_TIE * scale).sum())


def _similarities(rows: np.ndarray) -> np.ndarray:
    """Return the cosine of every pair of rows; with itself, none is its own neighbour."""
    import numpy as np

    similar = rows @ rows.T
    np.fill_diagonal(similar, -np.inf)
    return np.asarray(similar)
