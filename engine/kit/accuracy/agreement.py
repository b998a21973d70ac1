"""Choices: what a model decides - a class, a span, a nearest neighbour - and whether the built one decides the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from engine.kit.accuracy.outputs import SPANS, vectors
from engine.kit.accuracy.pooling import normalize

if TYPE_CHECKING:
    import numpy as np

    from engine.kit.checkpoints.sentences import Pooling
    from engine.kit.inputs.cases import Case

NEAR_TIE = 0.05
"""A choice counts as the same where the original values it this much worse at most, as a share of its largest logit.

The share is fixed and not taken from the measured error: a broken model must not excuse itself by being far off.
"""
NEAR_NEIGHBOURS = 0.02
"""The same for nearest neighbours, in cosine: so close, which of two texts is the nearer one is no fact."""

_TEXTS = 3
"""From so many on, a text has a choice of neighbours."""


def compare(name: str, original: np.ndarray, built: np.ndarray, real: np.ndarray | None) -> tuple[int, int]:
    """Return how many choices an output makes, and how many the built model makes differently, near ties apart.

    Logits choose by their largest: [batch, classes] once a row, [batch, sequence, classes] at every position that is
    `real`, spans one of the real positions. Integers are choices already, a row each. Other outputs choose nothing.
    """
    import numpy as np

    if not original.size:
        return 0, 0
    if original.dtype.kind in "iub":
        rows = original.reshape(len(original), -1) if original.ndim else original.reshape(1, 1)
        same = (rows == built.reshape(rows.shape)).all(axis=1)
        return len(same), int((~same).sum())
    first, second = _logits(name, original, real), _logits(name, built, real)
    if first is None or second is None:
        return 0, 0
    best, chosen = first.argmax(axis=1), second.argmax(axis=1)
    row = np.arange(len(first))
    scale = np.where(np.isfinite(first), abs(first), 0).max(axis=1)
    lost = np.where(best == chosen, 0, first[row, best] - first[row, chosen])
    return len(first), int((lost > NEAR_TIE * scale).sum())


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
    if len(names) < _TEXTS or len({row.shape for row in theirs}) > 1:
        return {}
    original, changed = (_similarities(normalize(np.stack(rows))) for rows in (theirs, ours))
    chosen = changed.argmax(axis=1)
    lost = original.max(axis=1) - original[np.arange(len(names)), chosen]
    same: dict[str, bool] = {}
    for name, loss in zip(names, lost, strict=True):
        same[name] = same.get(name, True) and bool(loss <= NEAR_NEIGHBOURS)
    return same


def predicted(output: np.ndarray) -> int | None:
    """Return the class of a sample from its logits, [batch, classes]; None where that is not what they are."""
    return int(output[0].argmax()) if _are_classes(output) else None


def _are_classes(output: np.ndarray) -> bool:
    return output.dtype.kind == "f" and output.ndim == 2 and len(output) > 0 and output.shape[1] > 1  # noqa: PLR2004


def _logits(name: str, output: np.ndarray, real: np.ndarray | None) -> np.ndarray | None:
    """Return the logits of each choice, [choices, options]; None where the output chooses nothing."""
    import numpy as np

    if output.dtype.kind != "f":
        return None
    if real is None:
        return output if _are_classes(output) else None
    if name in SPANS:
        return np.where(real, output, -np.inf)
    rows = output[real]
    return rows.reshape(len(rows), -1) if rows[:1].size > 1 else None


def _similarities(rows: np.ndarray) -> np.ndarray:
    """Return the cosine of every pair of rows; with itself, none is its own neighbour."""
    import numpy as np

    similar = rows @ rows.T
    np.fill_diagonal(similar, -np.inf)
    return np.asarray(similar)
