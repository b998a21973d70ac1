"""Fill-mask: turns logits over the vocabulary into the best words for each mask, as `{name}_postprocess`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


class Work:
    """The settings are `mask`, the id of the mask token, and `count`, the number of words for each mask.

    vocabulary.json lists the text of each token id.
    """

    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        import numpy as np

        tokens = json.loads((folder / "vocabulary.json").read_text("utf-8"))
        self.tokens = np.array([*(token.encode("utf-8") for token in tokens), b""], dtype=object)
        self.mask, self.count = settings["mask"], settings["count"]

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return `tokens`, `token_ids` and `scores`, each [rows, masks, count], the best words of each mask first.

        Inputs: `logits` [rows, tokens, vocabulary] and `input_ids` [rows, tokens]. A score is the softmax
        probability over the vocabulary. Rows with fewer masks than others are padded with "", -1 and 0. Raises
        ValueError for a row without a mask.
        """
        import numpy as np

        masked = given["input_ids"] == self.mask
        counts = masked.sum(axis=1)
        if not counts.all():
            raise ValueError("TEXT: a text without a mask (or so long that its mask was cut off): nothing to fill in")
        picked = given["logits"][masked].astype(np.float32, copy=False)
        best = np.argpartition(-picked, self.count - 1, axis=1)[:, : self.count]
        best = np.take_along_axis(best, np.argsort(-np.take_along_axis(picked, best, axis=1), axis=1), axis=1)
        shares = np.exp(picked - picked.max(axis=1, keepdims=True))
        scores = np.take_along_axis(shares, best, axis=1) / shares.sum(axis=1, keepdims=True)
        ids = self.rows(counts, best.astype(np.int64), -1)
        return {
            "tokens": self.tokens[np.minimum(ids, len(self.tokens) - 1)],
            "token_ids": ids,
            "scores": self.rows(counts, scores, 0),
        }

    def rows(self, counts: Any, values: Any, filler: int) -> Any:
        """Turn the values of all masks, [masks, count], into [rows, masks, count], padded with `filler`."""
        import numpy as np

        made = np.full((len(counts), counts.max(), self.count), filler, dtype=values.dtype)
        made[np.arange(made.shape[1]) < counts[:, None]] = values
        return made
