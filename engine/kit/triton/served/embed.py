"""Sentence embeddings: pools hidden states into one vector for each text, as `{name}_postprocess`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


class Work:
    """Pooling as in sentence-transformers (`modules/pooling.py`, `modules/normalize.py`).

    The setting `modes` lists pooling modes, whose vectors are concatenated; with the setting `normalise` each vector is
    scaled to length 1.
    """

    def __init__(self, _: Path, settings: dict[str, Any]) -> None:
        self.modes = [_MODES[mode] for mode in settings["modes"]]
        self.normalise = settings["normalise"]

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return `sentence_embedding` [rows, modes x hidden], float32.

        Inputs: `last_hidden_state` [rows, tokens, hidden] and `attention_mask` [rows, tokens].
        """
        import numpy as np

        states = given["last_hidden_state"].astype(np.float32, copy=False)
        mask = given["attention_mask"] != 0
        vectors = [mode(states, mask) for mode in self.modes]
        whole = vectors[0] if len(vectors) == 1 else np.concatenate(vectors, axis=1)
        if self.normalise:
            whole = whole / np.maximum(np.linalg.norm(whole, axis=1, keepdims=True), 1e-12)
        return {"sentence_embedding": np.ascontiguousarray(whole, dtype=np.float32)}


def _weighed(states: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return each row's weighted sum of hidden states, as one matrix product, without a copy of the states."""
    import numpy as np

    return np.asarray((weights.astype(np.float32)[:, None, :] @ states)[:, 0])


def _divided(vectors: np.ndarray, by: np.ndarray) -> np.ndarray:
    """Return each row of `vectors` divided by the row's number in `by`; a number below 1 counts as 1.

    A row that has only padding becomes a vector of zeros.
    """
    import numpy as np

    return np.asarray(vectors / np.maximum(by, 1).astype(np.float32)[:, None])


def _mean(states: np.ndarray, mask: np.ndarray) -> np.ndarray:
    return _divided(_weighed(states, mask), mask.sum(axis=1))


def _mean_by_root(states: np.ndarray, mask: np.ndarray) -> np.ndarray:
    return _divided(_weighed(states, mask), mask.sum(axis=1) ** 0.5)


def _weighted_mean(states: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Weighted mean: a token's weight is its position, counted from 1 at the first real token."""
    import numpy as np

    places = np.arange(1, mask.shape[1] + 1) - mask.argmax(axis=1)[:, None]
    weights = np.where(mask, places, 0)
    return _divided(_weighed(states, weights), weights.sum(axis=1))


def _largest(states: np.ndarray, mask: np.ndarray) -> np.ndarray:
    import numpy as np

    return np.asarray(np.where(mask[:, :, None], states, -np.inf).max(axis=1))


def _first(states: np.ndarray, mask: np.ndarray) -> np.ndarray:
    return states[range(len(states)), mask.argmax(axis=1)]


def _last(states: np.ndarray, mask: np.ndarray) -> np.ndarray:
    return states[range(len(states)), mask.shape[1] - 1 - mask[:, ::-1].argmax(axis=1)]


_MODES = {
    "cls": _first,
    "max": _largest,
    "mean": _mean,
    "mean_sqrt_len_tokens": _mean_by_root,
    "weightedmean": _weighted_mean,
    "lasttoken": _last,
}
