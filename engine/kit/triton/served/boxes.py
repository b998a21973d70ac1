"""Detection: turns the outputs of a detector into labels, scores and boxes, as `{name}_postprocess`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


_MOST = 300
"""The most boxes of an image by a user's own detector, as Ultralytics has it."""


class Work:
    """The boxes that `post_process_object_detection` of transformers finds, the best first.

    Settings: `labels` names the classes. With `scores` of `softmax`, each query is one object or none, and the last
    class means none. With `sigmoid`, the best pairs of a query and a class count: at most `most` of them, or as many as
    there are queries. `threshold` is the score that an object has to exceed.

    A user's own detector has other settings. `takes` names its outputs; `layout` says what they hold for each image:
    - yolov8: [4 + classes, boxes].
    - yolov5: [boxes, 5 + classes]; the fifth number is the score of an object of any class.
    - separate: boxes [boxes, 4] and scores, in either order of boxes and classes; or boxes, scores and labels [boxes].
    `format` (cxcywh or xyxy) and `normalized` say what the numbers of a box are, `size` and `fit` (stretch, crop or
    letterbox) how images were prepared, and `iou` how much two boxes of a class may overlap.
    """

    def __init__(self, _: Path, settings: dict[str, Any]) -> None:
        import numpy as np

        self.labels = np.array([label.encode("utf-8") for label in settings["labels"]], dtype=object)
        self.settings, self.own = settings, _LAYOUTS[settings.get("layout", "yolov8")]
        self.best = {"softmax": _best_classes, "sigmoid": _best_pairs}[settings.get("scores", "sigmoid")]
        self.most, self.threshold = settings.get("most"), np.float32(settings["threshold"])

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return `labels` and `scores` [rows, objects], and `boxes` [rows, objects, 4] in pixels of the upright file.

        Inputs: `logits` [rows, queries, classes]; `pred_boxes` [rows, queries, 4], each the centre, the width and the
        height as shares of the image; and `image_sizes` [rows, 2], each the height and the width in pixels. A
        user's own detector has its own outputs in place of the first two.
        """
        import numpy as np

        if "layout" in self.settings:
            sizes = enumerate(given["image_sizes"].tolist())
            rows = [self.of_own([given[name][row] for name in self.settings["takes"]], *size) for row, size in sizes]
            return finished(rows, self.labels, self.threshold)
        logits, shares = (given[name].astype(np.float32, copy=False) for name in ("logits", "pred_boxes"))
        sizes = given["image_sizes"].astype(np.float32)[:, [1, 0, 1, 0]]
        rows = []
        for row, size in enumerate(sizes):
            queries, classes, scores = self.best(logits[row], self.most)
            rows.append((classes, scores, corners(shares[row])[queries] * size))
        return finished(rows, self.labels, self.threshold)

    def of_own(self, outputs: list[np.ndarray], height: int, width: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the classes, the scores and the boxes in an image, whose file has this height and width."""
        import numpy as np

        boxes, scores, classes = self.own(outputs)
        likely = (scores > self.threshold) & (classes >= 0) & (classes < len(self.labels))
        boxes, scores, classes = boxes[likely].astype(np.float32), scores[likely], classes[likely]
        boxes = corners(boxes) if self.settings["format"] == "cxcywh" else boxes
        best = kept(boxes, scores, classes, self.settings["iou"])
        high, wide = tall, broad = self.settings["size"]
        if self.settings["fit"] != "stretch":
            ratio = (max if self.settings["fit"] == "letterbox" else min)(height / high, width / wide)
            tall, broad = max(1, round(height / ratio)), max(1, round(width / ratio))
        places = boxes[best] * np.array([wide, high] * 2 if self.settings["normalized"] else [1] * 4)
        places -= [(wide - broad) // 2, (high - tall) // 2] * 2  # the border around the image, or what was cropped
        places = np.clip(places * ([width / broad, height / tall] * 2), 0, [width, height] * 2)
        return classes[best], scores[best], places.astype(np.float32)


def kept(boxes: np.ndarray, scores: np.ndarray, classes: np.ndarray, iou: float) -> np.ndarray:
    """Return the indices of the boxes that stay, the best first: those that overlap no better box of their class.

    The overlap is the intersection over the union, as in torchvision's `batched_nms` and ONNX's NonMaxSuppression.
    """
    import numpy as np

    order = np.argsort(-scores, kind="stable")
    areas = (boxes[:, 2:] - boxes[:, :2]).prod(axis=1)
    stay: list[int] = []
    while len(order) and len(stay) < _MOST:
        best, rest = order[0], order[1:]
        stay.append(best)
        sides = np.minimum(boxes[best, 2:], boxes[rest, 2:]) - np.maximum(boxes[best, :2], boxes[rest, :2])
        shared = np.maximum(sides, 0).prod(axis=1)
        apart = shared <= iou * (areas[best] + areas[rest] - shared)
        order = rest[apart | (classes[rest] != classes[best])]
    return np.array(stay, np.int64)


def _yolov8(outputs: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    boxes, scores = outputs[0][:4].T, outputs[0][4:]
    return boxes, scores.max(axis=0), scores.argmax(axis=0)


def _yolov5(outputs: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    boxes, scores = outputs[0][:, :4], outputs[0][:, 5:] * outputs[0][:, 4:5]
    return boxes, scores.max(axis=1), scores.argmax(axis=1)


def _separate(outputs: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return each box with its label or, without an output of labels, once with each of the classes."""
    import numpy as np

    boxes, scores, *labels = outputs
    if labels:
        return boxes, scores, labels[0].astype(np.int64)
    scores = scores if len(scores) == len(boxes) else scores.T
    count = scores.shape[1]
    return np.repeat(boxes, count, axis=0), scores.ravel(), np.tile(np.arange(count), len(boxes))


_LAYOUTS = {"yolov8": _yolov8, "yolov5": _yolov5, "separate": _separate}


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
