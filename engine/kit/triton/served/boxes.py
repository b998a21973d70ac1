"""Detection: turns the queries of a detector into labels, scores and boxes, as `{name}_postprocess`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


class Work:
    """The boxes that `post_process_object_detection` of transformers finds, the best first.

    Settings: `labels` names the classes. With `scores` of `softmax`, each query is one object or none, and the last
    class means none. With `sigmoid`, the best pairs of a query and a class count: at most `most` of them, or as many as
    there are queries. `threshold` is the score that an object has to exceed.
    """

    def __init__(self, _: Path, settings: dict[str, Any]) -> None:
        import numpy as np

        self.labels = np.array([label.encode("utf-8") for label in settings["labels"]], dtype=object)
        self.best = {"softmax": _best_classes, "sigmoid": _best_pairs}[settings["scores"]]
        self.most, self.threshold = settings.get("most"), np.float32(settings["threshold"])

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return `labels` and `scores` [rows, objects], and `boxes` [rows, objects, 4] in pixels of the upright file.

        Inputs: `logits` [rows, queries, classes]; `pred_boxes` [rows, queries, 4], each the centre, the width and the
        height as shares of the image; and `image_sizes` [rows, 2], each the height and the width in pixels.
        """
        import numpy as np

        logits, shares = (given[name].astype(np.float32, copy=False) for name in ("logits", "pred_boxes"))
        sizes = given["image_sizes"].astype(np.float32)[:, [1, 0, 1, 0]]
        rows = []
        for row, size in enumerate(sizes):
            queries, classes, scores = self.best(logits[row], self.most)
            rows.append((classes, scores, corners(shares[row])[queries] * size))
        return finished(rows, self.labels, self.threshold)


def corners(boxes: np.ndarray) -> np.ndarray:
    """Return boxes [..., 4] of centre, width and height as xmin, ymin, xmax, ymax."""
    import numpy as np

    middle, half = boxes[..., :2], boxes[..., 2:] * np.float32(0.5)
    return np.concatenate([middle - half, middle + half], axis=-1)


def finished(
    rows: list[tuple[np.ndarray, np.ndarray, np.ndarray]], labels: np.ndarray, threshold: np.float32
) -> dict[str, Any]:
    """Return the arrays for clients: of each row the objects above the threshold, the best first.

    A row has the number of the class, the score and the box of each of its objects. Rows with fewer objects are filled
    up with "", 0 and -1.
    """
    import numpy as np

    kept = []
    for classes, scores, boxes in rows:
        order = np.argsort(-scores, kind="stable")
        order = order[scores[order] > threshold]
        kept.append((labels[classes[order]], scores[order], boxes[order]))
    shape = (len(kept), max((len(scores) for _, scores, _ in kept), default=0))
    names, points = np.full(shape, b"", dtype=object), np.zeros(shape, np.float32)
    places = np.full((*shape, 4), -1, np.float32)
    for row, (own_names, own_scores, own_boxes) in enumerate(kept):
        count = len(own_scores)
        names[row, :count], points[row, :count], places[row, :count] = own_names, own_scores, own_boxes
    return {"labels": names, "scores": points, "boxes": places}


def _best_classes(logits: np.ndarray, _: int | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return each query, its best class, and that class's score."""
    import numpy as np

    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares = (shares / shares.sum(axis=1, keepdims=True))[:, :-1]
    return np.arange(len(logits)), shares.argmax(axis=1), shares.max(axis=1)


def _best_pairs(logits: np.ndarray, most: int | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the query, the class and the score of the best pairs of a query and a class."""
    import numpy as np

    order = np.argsort(-logits, axis=None, kind="stable")[: most or len(logits)]
    queries, classes = np.divmod(order, logits.shape[1])
    return queries, classes, np.asarray(0.5 + 0.5 * np.tanh(0.5 * logits[queries, classes]))
