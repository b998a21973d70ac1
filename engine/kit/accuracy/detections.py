"""Detections: whether the built model finds the objects that the original finds, with equal labels and places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.kit.accuracy.agreement import NO_CHOICES, Choices

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np

    from engine.kit.inputs.cases import Case

    Outputs = Mapping[str, np.ndarray]
    _Row = tuple[np.ndarray, np.ndarray]
    """The scores and the boxes of the queries of one row."""

LOGITS, BOXES = "logits", "pred_boxes"
"""The outputs of a detector: [batch, queries, classes], and [batch, queries, 4] of centres, widths and heights."""
THRESHOLD = 0.5
"""The score above which a query counts as an object, as in transformers' object-detection pipeline."""
_LEAST = 5
"""The number of best queries that count as objects where fewer have a score above the threshold."""
_OVERLAP = 0.5
"""The least share of the common area in the joint area of two boxes of one object."""
_WEAKER = 0.5
"""An object is found again where a query has its label and place, and at least this share of its score."""
_TIE = 0.05
"""An object whose label has another one ahead of it, by at most this score, is a near tie."""
NEAR_TIE_IN_WORDS = f"scores of two labels at most {_TIE} apart"
_RANK = 3


@dataclass(frozen=True)
class Detector:
    """A detector with queries; `has_none` tells whether the last class of its logits means no object."""

    has_none: bool

    @classmethod
    def of(cls, cases: Sequence[Case], checkpoint: Path | None = None) -> Detector | None:
        """Return the detector whose outputs the cases have; None for another model.

        Without the checkpoint, whose labels tell of a class that means no object, the last class is one like others.
        """
        from engine.kit.checkpoints import labels

        logits, boxes = (cases[0].outputs.get(name) if cases else None for name in (LOGITS, BOXES))
        if logits is None or boxes is None or logits.ndim != _RANK or logits.shape[:2] != boxes.shape[:2]:
            return None
        return cls(has_none=checkpoint is not None and logits.shape[2] == labels.count(checkpoint) + 1)

    def aligned(self, original: Outputs, built: Outputs) -> dict[str, np.ndarray]:
        """Return the built model's outputs with its queries in the order of the original's.

        Some detectors sort their queries by score, so that the smallest error exchanges two of them. Each query of the
        original gets the nearest query that is left, in its box and its scores.
        """
        import numpy as np

        if any(built[name].shape != original[name].shape for name in (LOGITS, BOXES)):
            return dict(built)
        orders = []
        for row in range(len(original[LOGITS])):
            first, second = (
                np.concatenate([self._scores(each[LOGITS][row]), each[BOXES][row]], axis=1)
                for each in (original, built)
            )
            apart = np.stack([np.abs(first - query).mean(axis=1) for query in second], axis=1)
            order = np.arange(len(first))
            # The other queries stay, so that equal ones are not exchanged.
            moved = [query for query in order if apart[query, query] > apart[query].min()]
            left = list(moved)
            for query in moved:
                order[query] = left.pop(int(apart[query, left].argmin()))
            orders.append(order)
        index = np.array(orders)[:, :, None]
        return {**built, **{name: np.take_along_axis(built[name], index, axis=1) for name in (LOGITS, BOXES)}}

    def choices(self, original: Outputs, built: Outputs) -> Choices:
        """Return how many objects of either model the other one does not find, with the same label and place."""
        rows = range(len(original[LOGITS]))
        pairs = [[(self._scores(each[LOGITS][row]), each[BOXES][row]) for each in (original, built)] for row in rows]
        return sum((_lost(*each) for pair in pairs for each in (pair, pair[::-1])), NO_CHOICES)

    def _scores(self, logits: np.ndarray) -> np.ndarray:
        """Return the score of each class for each query, as the detector's own post-processing computes it."""
        import numpy as np

        logits = logits.astype(np.float64)
        if not self.has_none:
            return np.asarray(0.5 + 0.5 * np.tanh(0.5 * logits))
        shares = np.exp(logits - logits.max(axis=1, keepdims=True))
        return np.asarray((shares / shares.sum(axis=1, keepdims=True))[:, :-1])


def _lost(first: _Row, second: _Row) -> Choices:
    """Return the objects of the first row, and how many of them the second row lacks."""
    scores, boxes = first
    best = scores.max(axis=1)
    objects = (-best).argsort(kind="stable")[: max(_LEAST, int((best > THRESHOLD).sum()))]
    lost = near = 0
    for query in objects:
        label = scores[query].argmax()
        matches = (_overlaps(boxes[query], second[1]) >= _OVERLAP) & (second[0][:, label] >= _WEAKER * best[query])
        behind = second[0].max(axis=1) - second[0][:, label]
        if not (matches & (behind == 0)).any():
            lost += 1
            near += bool((matches & (behind <= _TIE)).any())
    return Choices(len(objects), lost, near)


def _overlaps(box: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return the common area of a box and each other one, as a share of their joint area."""
    import numpy as np

    own, sides = np.abs(box[2:]), np.abs(others[:, 2:])  # an untrained D-FINE gives boxes that end before they start
    least = np.maximum(box[:2] - own / 2, others[:, :2] - sides / 2)
    most = np.minimum(box[:2] + own / 2, others[:, :2] + sides / 2)
    common = np.maximum(most - least, 0).prod(axis=1)
    joint = own.prod() + sides.prod(axis=1) - common
    return np.asarray(common / np.maximum(joint, np.finfo(np.float32).tiny))
