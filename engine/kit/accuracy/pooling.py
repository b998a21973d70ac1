"""Pooling: one vector for a text, computed from its hidden states."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    from engine.kit.checkpoints.sentences import Pooling


def pool(hidden: np.ndarray, mask: np.ndarray, how: Pooling) -> np.ndarray:
    """Return one vector of length 1 per text, float64 [batch, hidden].

    `hidden` is [batch, sequence, hidden]; `mask` is [batch, sequence] with 1 for each token that is not padding. The
    mode `cls` takes the first token that is not padding, also in rows that are padded on the left. The computation
    follows sentence-transformers (`models/Pooling.py`, `Normalize.py`).
    """
    import numpy as np

    counts = mask.astype(bool)
    states = hidden.astype(np.float64)
    if how == "cls":
        vectors = states[np.arange(len(states)), counts.argmax(axis=1)]
    elif how == "max":
        vectors = np.where(counts[:, :, None], states, -np.inf).max(axis=1)
        vectors = np.where(np.isfinite(vectors), vectors, 0)
    else:
        vectors = np.where(counts[:, :, None], states, 0).sum(axis=1) / np.maximum(1, counts.sum(axis=1))[:, None]
    return normalize(vectors)


def normalize(vectors: np.ndarray) -> np.ndarray:
    """Return the vectors, [batch, hidden], scaled to length 1. A vector of zeros stays a vector of zeros."""
    import numpy as np

    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1))
