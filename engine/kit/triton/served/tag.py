"""Token classification: turns logits into a label for each token, as `{name}_postprocess`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


class Work:
    """The setting `labels` names the classes; vocabulary.json lists the text of each token id."""

    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        import numpy as np

        tokens = json.loads((folder / "vocabulary.json").read_text("utf-8"))
        self.labels = np.array([*(label.encode("utf-8") for label in settings["labels"]), b""], dtype=object)
        # The empty text at the end stands for padding and for ids that no token has.
        self.tokens = np.array([*(token.encode("utf-8") for token in tokens), b""], dtype=object)

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return `labels`, `scores` and `tokens`, each [rows, tokens].

        Inputs: `logits` [rows, tokens, classes], `input_ids` and `attention_mask` [rows, tokens]. A score is the
        softmax probability of the label. Padding gets an empty label, an empty token and the score 0.
        """
        import numpy as np

        logits = given["logits"].astype(np.float32, copy=False)
        visible = given["attention_mask"] != 0
        largest = logits.max(axis=2, keepdims=True)
        scores = 1 / np.exp(logits - largest).sum(axis=2)
        last = len(self.tokens) - 1
        return {
            "labels": self.labels[np.where(visible, logits.argmax(axis=2), -1)],
            "scores": np.where(visible, scores, np.float32(0)),
            "tokens": self.tokens[np.where(visible, np.minimum(given["input_ids"], last), last)],
        }
