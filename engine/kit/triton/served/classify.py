"""Classification: turns logits into labels with scores, best first, as `{name}_postprocess`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


class Work:
    """The setting `labels` names the classes; without it, the texts of a row are its classes.

    The setting `scores` names the function that turns logits into scores, and `logits` the input with the logits.
    """

    def __init__(self, _: Path, settings: dict[str, Any]) -> None:
        import numpy as np

        labels = settings.get("labels")
        self.labels = None if labels is None else np.array([label.encode("utf-8") for label in labels], dtype=object)
        self.logits = settings.get("logits", "logits")
        self.scores = {"softmax": _softmax, "sigmoid": _sigmoid, "number": _number, "exp": _exp}[settings["scores"]]

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return `labels` and `scores`, each [rows, classes]; the inputs are logits [rows, classes] and maybe TEXT.

        Of numbers of classes, [rows] or [rows, 1], only `labels` [rows, 1] is returned.
        """
        import numpy as np

        logits = given[self.logits]
        if self.labels is not None and logits.dtype.kind != "f":
            return {"labels": self.labels[logits.reshape(-1, 1)]}
        logits = logits.astype(np.float32, copy=False)
        order = np.argsort(-logits, axis=1, kind="stable")  # different logits may have equal scores
        labels = np.take_along_axis(given["TEXT"], order, axis=1) if self.labels is None else self.labels[order]
        return {"labels": labels, "scores": np.take_along_axis(self.scores(logits), order, axis=1)}


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
