"""Logits in, labels with scores out, best first: the work of `{name}_postprocess` of a classifier."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


class Work:
    """Settings: `labels`, the name of each class, and `scores`, what makes a score of a logit."""

    def __init__(self, _: Path, settings: dict[str, Any]) -> None:
        import numpy as np

        self.labels = np.array([label.encode("utf-8") for label in settings["labels"]], dtype=object)
        self.scores = {"softmax": _softmax, "sigmoid": _sigmoid, "number": _number}[settings["scores"]]

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return `labels` and `scores`, each [rows, classes], of `logits` [rows, classes]."""
        import numpy as np

        logits = given["logits"].astype(np.float32, copy=False)
        order = np.argsort(-logits, axis=1, kind="stable")  # scores that are alike may come of logits that differ
        return {"labels": self.labels[order], "scores": np.take_along_axis(self.scores(logits), order, axis=1)}


def _softmax(logits: np.ndarray) -> np.ndarray:
    import numpy as np

    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def _sigmoid(logits: np.ndarray) -> np.ndarray:
    """Return 1 / (1 + exp(-x)), by way of tanh, which never overflows."""
    import numpy as np

    return np.asarray(0.5 + 0.5 * np.tanh(0.5 * logits))


def _number(logits: np.ndarray) -> np.ndarray:
    return logits
