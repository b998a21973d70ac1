"""Classification: turns logits into labels with scores, best first, as `{name}_postprocess`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


class Work:
    """The setting `labels` names the classes; the setting `scores` names the function that turns logits into scores."""

    def __init__(self, _: Path, settings: dict[str, Any]) -> None:
        import numpy as np

        self.labels = np.array([label.encode("utf-8") for label in settings["labels"]], dtype=object)
        self.scores = {"softmax": _softmax, "sigmoid": _sigmoid, "number": _number, "exp": _exp}[settings["scores"]]

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return `labels` and `scores`, each [rows, classes]; the input is `logits` [rows, classes]."""
        import numpy as np

        logits = given["logits"].astype(np.float32, copy=False)
        order = np.argsort(-logits, axis=1, kind="stable")  # different logits may have equal scores
        return {"labels": self.labels[order], "scores": np.take_along_axis(self.scores(logits), order, axis=1)}


def _softmax(logits: np.ndarray) -> np.ndarray:
    import numpy as np

    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def _sigmoid(logits: np.ndarray) -> np.ndarray:
    """Return the sigmoid of the logits, computed with tanh, which never overflows."""
    import numpy as np

    return np.asarray(0.5 + 0.5 * np.tanh(0.5 * logits))


def _exp(logarithms: np.ndarray) -> np.ndarray:
    import numpy as np

    return np.asarray(np.exp(logarithms))


def _number(logits: np.ndarray) -> np.ndarray:
    return logits
