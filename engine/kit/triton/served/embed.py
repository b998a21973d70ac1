"""Sentence embeddings: makes one vector of each text's hidden states, as `{name}_postprocess`."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


class Work:
    """The modules of sentence-transformers (`modules/pooling.py`, `dense.py`, `layer_norm.py`, `normalize.py`).

    Settings: `modes`, the pooling modes, whose vectors are concatenated; `skip`, how many tokens of a prompt at the
    beginning of each text are left out; `layers`, the modules behind the pooling, whose weights are in layers.npz under
    the number of the module; `truncate_dim`, how many numbers of the vector are kept, or null.
    """

    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        import numpy as np

        path = folder / "layers.npz"
        arrays = dict(np.load(path)) if path.is_file() else {}
        self.modes = [_MODES[mode] for mode in settings["modes"]]
        self.skip, self.truncate_dim = settings["skip"], settings["truncate_dim"]
        self.layers = [
            (_LAYERS[each["kind"]], {**each, **_of_layer(arrays, number)})
            for number, each in enumerate(settings["layers"])
        ]

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return `sentence_embedding` [rows, size], float32.

        Inputs: `last_hidden_state` [rows, tokens, hidden] and `attention_mask` [rows, tokens].
        """
        import numpy as np

        states = given["last_hidden_state"].astype(np.float32, copy=False)
        mask = given["attention_mask"] != 0
        first = mask.argmax(axis=1)[:, None]
        mask = mask & (np.arange(mask.shape[1]) >= first + self.skip) if self.skip else mask
        vectors = [mode(states, mask, first) for mode in self.modes]
        whole = vectors[0] if len(vectors) == 1 else np.concatenate(vectors, axis=1)
        for layer, options in self.layers:
            whole = layer(whole, options)
        return {"sentence_embedding": np.ascontiguousarray(whole[:, : self.truncate_dim], dtype=np.float32)}


def _of_layer(arrays: dict[str, np.ndarray], number: int) -> dict[str, np.ndarray]:
    """Return the weights of one module by their names in the module."""
    start = f"{number}."
    return {name.removeprefix(start): array for name, array in arrays.items() if name.startswith(start)}


def _dense(vectors: np.ndarray, options: dict[str, Any]) -> np.ndarray:
    import numpy as np

    given = vectors @ options["linear.weight"].T + options.get("linear.bias", 0)
    vector = _activated(given, options["activation"])
    if options["residual"]:
        vector = vector + (vectors @ options["residual.weight"].T if "residual.weight" in options else vectors)
    return np.asarray(vector)


def _layer_norm(vectors: np.ndarray, options: dict[str, Any]) -> np.ndarray:
    import numpy as np

    centred = vectors - vectors.mean(axis=1, keepdims=True)
    spread = np.sqrt((centred**2).mean(axis=1, keepdims=True) + np.float32(1e-5))
    return np.asarray(centred / spread * options["norm.weight"] + options["norm.bias"])


def _normalize(vectors: np.ndarray, _: dict[str, Any]) -> np.ndarray:
    import numpy as np

    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12))


_LAYERS = {"Dense": _dense, "LayerNorm": _layer_norm, "Normalize": _normalize}


def _activated(numbers: np.ndarray, function: str) -> np.ndarray:
    """Return a function of torch, of each number."""
    import numpy as np

    match function:
        case "GELU":
            return np.asarray(0.5 * numbers * (1 + np.vectorize(math.erf)(numbers / math.sqrt(2))))
        case "ReLU":
            return np.asarray(np.maximum(numbers, 0))
        case "Tanh":
            return np.asarray(np.tanh(numbers))
        case "Sigmoid" | "SiLU":
            share = 0.5 + 0.5 * np.tanh(0.5 * numbers)  # tanh never overflows
            return np.asarray(share if function == "Sigmoid" else numbers * share)
    return numbers


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


def _mean(states: np.ndarray, mask: np.ndarray, _: np.ndarray) -> np.ndarray:
    return _divided(_weighed(states, mask), mask.sum(axis=1))


def _mean_by_root(states: np.ndarray, mask: np.ndarray, _: np.ndarray) -> np.ndarray:
    return _divided(_weighed(states, mask), mask.sum(axis=1) ** 0.5)


def _weighted_mean(states: np.ndarray, mask: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Weighted mean: a token's weight is its position, counted from 1 at the first real token."""
    import numpy as np

    places = np.arange(1, mask.shape[1] + 1) - first
    weights = np.where(mask, places, 0)
    return _divided(_weighed(states, weights), weights.sum(axis=1))


def _largest(states: np.ndarray, mask: np.ndarray, _: np.ndarray) -> np.ndarray:
    import numpy as np

    return np.asarray(np.where(mask[:, :, None], states, -np.inf).max(axis=1))


def _first(states: np.ndarray, mask: np.ndarray, _: np.ndarray) -> np.ndarray:
    return states[range(len(states)), mask.argmax(axis=1)]


def _last(states: np.ndarray, mask: np.ndarray, _: np.ndarray) -> np.ndarray:
    return states[range(len(states)), mask.shape[1] - 1 - mask[:, ::-1].argmax(axis=1)]


_MODES = {
    "cls": _first,
    "max": _largest,
    "mean": _mean,
    "mean_sqrt_len_tokens": _mean_by_root,
    "weightedmean": _weighted_mean,
    "lasttoken": _last,
}
