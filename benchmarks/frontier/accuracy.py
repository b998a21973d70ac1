"""Accuracy: sentence embeddings of a contender compared with those of the original model in PyTorch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    Tensors = Mapping[str, np.ndarray]

VALID = 0.99
"""The mean cosine below which a contender is not valid, and no peer to beat."""


@dataclass(frozen=True)
class Accuracy:
    """Cosines of embeddings with those of the original, and the share of sentences with the same nearest neighbour."""

    mean: float
    worst: float
    mean_in_batch: float
    worst_in_batch: float
    alone_in_batch: float
    """The least cosine between the contender's own answers to one sentence, alone and in a batch."""
    neighbours: float
    sentences: int

    @property
    def valid(self) -> bool:
        """Whether the contender counts as a peer."""
        return min(self.mean, self.mean_in_batch) >= VALID

    @property
    def least(self) -> float:
        """The worst cosine, alone or in a batch."""
        return min(self.worst, self.worst_in_batch)


def compared(truth: np.ndarray, alone: np.ndarray, batched: np.ndarray) -> Accuracy:
    """Compare embeddings of length 1, [sentences, hidden]: the original's, and a contender's alone and in batches."""
    single, many = (alone * truth).sum(axis=1), (batched * truth).sum(axis=1)
    return Accuracy(
        mean=float(single.mean()),
        worst=float(single.min()),
        mean_in_batch=float(many.mean()),
        worst_in_batch=float(many.min()),
        alone_in_batch=float((alone * batched).sum(axis=1).min()),
        neighbours=float((_nearest(alone) == _nearest(truth)).mean()),
        sentences=len(truth),
    )


def embedded(outputs: Sequence[np.ndarray], calls: Sequence[Tensors], part: Sequence[int] | None = None) -> np.ndarray:
    """Return the embedding of each sentence: the mean of its hidden states, [sentences, hidden]; other rows flat.

    `part` is the range of the second axis that counts.
    """
    import numpy as np

    from engine.kit.accuracy.outputs import normalize, pool

    tokens = 3
    rows = [
        pool(output, call["attention_mask"], "mean")
        if output.ndim == tokens and "attention_mask" in call
        else normalize(output[:, slice(*part or (None,))].reshape(len(output), -1).astype(np.float64))
        for output, call in zip(outputs, calls, strict=True)
    ]
    return np.concatenate(rows)


def _nearest(embeddings: np.ndarray) -> np.ndarray:
    import numpy as np

    near = embeddings @ embeddings.T
    np.fill_diagonal(near, -np.inf)
    return np.asarray(near.argmax(axis=1))
