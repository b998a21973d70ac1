"""Agreement: whether the built model chooses the same class, span, pixel or nearest neighbour as the original."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.kit.accuracy.outputs import SPANS, normalize, positions, vectors

if TYPE_CHECKING:
    import numpy as np

    from engine.kit.checkpoints.sentences import Pooling
    from engine.kit.inputs.cases import Case

NEAR_TIE = 0.05
"""The largest gap between two logits that counts as a near tie, as a share of the original's largest logit.

The gap is the original's logit for the original's choice, minus the original's logit for the built model's choice.
`NEAR_TIE` is a constant, because a tolerance that grew with the measured error would let a broken model pass.
"""
NEAR_TIE_IN_WORDS = f"gaps of at most {NEAR_TIE:.0%} of the largest logit"
NEAR_NEIGHBOURS = 0.02
"""The largest gap between two cosines that counts as a near tie of nearest neighbours.

The gap is the original's cosine with the original's nearest neighbour, minus the original's cosine with the built
model's nearest neighbour.
"""
NEAR_NEIGHBOURS_IN_WORDS = f"cosines at most {NEAR_NEIGHBOURS} apart"

_TEXTS = 3
"""The least number of texts for a comparison of nearest neighbours, because two texts leave no choice of neighbour."""


@dataclass(frozen=True)
class Choices:
    """How many choices two models were compared in, how many of them differ, and how many of those are near ties."""

    count: int = 0
    changed: int = 0
    near_ties: int = 0

    def __add__(self, other: Choices) -> Choices:
        return Choices(self.count + other.count, self.changed + other.changed, self.near_ties + other.near_ties)


NO_CHOICES = Choices()


def compare(name: str, original: np.ndarray, built: np.ndarray, real: np.ndarray | None) -> Choices:
    """Return the choices in an output of both models.

    Each row of logits [batch, classes] makes one choice, the class with the largest logit, and so does each pixel of
    logits [batch, classes, height, width]. Of logits [batch, sequence,
    classes], each `real` position makes one choice, the class with the largest logit. Each row of `start_logits` or
    `end_logits` [batch, sequence] chooses the `real` position with the largest logit. Each row of an output of integers
    is one choice, which differs where any integer of the row differs. An output makes no choice where it is neither
    integers nor logits of one of these shapes. Different choices
    are a near tie where the gap between them is small (`NEAR_TIE`); integers have no near ties.
    """
    import numpy as np

    if not original.size:
        return NO_CHOICES
    if original.dtype.kind in "iub":
        rows = original.reshape(len(original), -1) if original.ndim else original.reshape(1, 1)
        same = (rows == built.reshape(rows.shape)).all(axis=1)
        return Choices(len(same), int((~same).sum()))
    first, second = _logits(name, original, real), _logits(name, built, real)
    if first is None or second is None:
        return NO_CHOICES
    best, chosen = first.argmax(axis=1), second.argmax(axis=1)
    row = np.arange(len(first))
    scale = np.where(np.isfinite(first), abs(first), 0).max(axis=1)
    differ = best != chosen
    lost = np.where(differ, first[row, best] - first[row, chosen], 0)
    near = differ & (lost <= NEAR_TIE * scale)
    return Choices(len(first), int(differ.sum()), int(near.sum()))


def classes(name: str, case: Case) -> set[int]:
    """Return the classes that the original chooses in an output; {} for an output that makes no choice of a class."""
    import numpy as np

    if name in SPANS or case.outputs[name].dtype.kind != "f" or not case.outputs[name].size:
        return set()
    logits = _logits(name, case.outputs[name], positions(name, case.outputs[name], case.inputs))
    return set() if logits is None else {int(each) for each in np.unique(logits.argmax(axis=1))}


def neighbours(
    cases: Sequence[Case], built: Sequence[Mapping[str, np.ndarray]], pooling: Pooling
) -> dict[str, Choices]:
    """Return each case's name -> whether both models choose equal nearest neighbours; {} below three texts.

    Two neighbours are a near tie where the gap between their cosines is small (`NEAR_NEIGHBOURS`).

    Padded batches of texts are left out, because the nearest neighbour of a padded text would be the same text without
    padding.
    """
    import numpy as np

    names: list[str] = []
    ours: list[np.ndarray] = []
    theirs: list[np.ndarray] = []
    for case, outputs in zip(cases, built, strict=True):
        if case.kind not in {"sample", "random", "tensors"}:
            continue
        name = next(iter(case.outputs))
        counted = slice(1) if case.kind == "sample" else slice(None)  # a fixed batch repeats one text
        rows = vectors(name, case.outputs[name], case.inputs, pooling=pooling)[counted]
        theirs += rows
        ours += vectors(name, outputs[name], case.inputs, pooling=pooling)[counted]
        names += [case.name] * len(rows)
    if len(names) < _TEXTS or len({row.shape for row in theirs}) > 1:
        return {}
    original, changed = (_similarities(normalize(np.stack(rows))) for rows in (theirs, ours))
    chosen = changed.argmax(axis=1)
    lost = original.max(axis=1) - original[np.arange(len(names)), chosen]
    choices: dict[str, Choices] = {}
    for name, differs, loss in zip(names, chosen != original.argmax(axis=1), lost, strict=True):
        each = Choices(1, int(differs), int(differs and loss <= NEAR_NEIGHBOURS))
        choices[name] = choices.get(name, NO_CHOICES) + each
    return choices


def predicted(output: np.ndarray) -> int | None:
    """Return the number of the class with the largest logit of a sample; None for an output of another shape."""
    return int(output[0].argmax()) if _are_classes(output) else None


def _are_classes(output: np.ndarray) -> bool:
    return output.dtype.kind == "f" and output.ndim == 2 and len(output) > 0 and output.shape[1] > 1  # noqa: PLR2004


def _logits(name: str, output: np.ndarray, real: np.ndarray | None) -> np.ndarray | None:
    """Return the logits of each choice, [choices, options]; None for an output that makes no choice."""
    import numpy as np

    if output.dtype.kind != "f":
        return None
    if real is None and name == "logits" and output.ndim == 4 and output.shape[1] > 1:  # noqa: PLR2004  a mask
        return np.moveaxis(output, 1, -1).reshape(-1, output.shape[1])
    if real is None:
        return output if _are_classes(output) else None
    if name in SPANS:
        return np.where(real, output, -np.inf)
    rows = output[real]
    return rows.reshape(len(rows), -1) if rows[:1].size > 1 else None


def _similarities(rows: np.ndarray) -> np.ndarray:
    """Return the cosine of each pair of rows; -inf for a row with itself, so that no row is its own neighbour."""
    import numpy as np

    similar = rows @ rows.T
    np.fill_diagonal(similar, -np.inf)
    return np.asarray(similar)
