"""Boxes of an own detector: those that overlap no better box of their class, as `{name}_postprocess`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

_MOST = 300
"""The most boxes of an image, as Ultralytics has it."""


class Work:
    """Boxes with labels and scores, the best first, in pixels of the upright file.

    `takes` names the outputs of the model, which depend on `layout`; each has a row for an image:
    - yolov8: [rows, 4 + classes, boxes].
    - yolov5: [rows, boxes, 5 + classes]; the fifth number is the score of an object of any class.
    - separate: boxes [rows, boxes, 4] and scores [rows, boxes, classes]; or scores and labels, each [rows, boxes].

    `format` (cxcywh or xyxy) and `normalized` say what the numbers of a box are, `size` and `fit` (stretch, crop or
    letterbox) how images were prepared. Further settings: `labels`, `threshold`, `iou`.
    """

    def __init__(self, _: Path, settings: dict[str, Any]) -> None:
        import numpy as np

        self.settings = settings
        self.labels = np.array([label.encode("utf-8") for label in settings["labels"]], dtype=object)
        self.read = {"yolov8": _yolov8, "yolov5": _yolov5, "separate": _separate}[settings["layout"]]

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return `labels` and `scores` [rows, boxes], and `boxes` [rows, boxes, 4] of xmin, ymin, xmax, ymax.

        Rows with fewer boxes are filled up with "", 0 and -1.
        """
        import numpy as np

        outputs = [given[name] for name in self.settings["takes"]]
        rows = [
            self.row([output[row] for output in outputs], size) for row, size in enumerate(given["image_sizes"].tolist())
        ]
        shape = (len(rows), max((len(scores) for _, scores, _ in rows), default=0))
        labels, every = np.full(shape, b"", dtype=object), np.zeros(shape, np.float32)
        places = np.full((*shape, 4), -1, np.float32)
        for row, (boxes, scores, classes) in enumerate(rows):
            count = len(scores)
            labels[row, :count], every[row, :count], places[row, :count] = self.labels[classes], scores, boxes
        return {"labels": labels, "scores": every, "boxes": places}

    def row(self, outputs: list[np.ndarray], size: list[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the boxes, scores and classes of an image whose file has this height and width."""
        import numpy as np

        boxes, scores, classes = self.read(outputs)
        likely = (scores > self.settings["threshold"]) & (classes >= 0) & (classes < len(self.labels))
        boxes, scores, classes = boxes[likely].astype(np.float32), scores[likely], classes[likely]
        if self.settings["format"] == "cxcywh":
            middle, half = boxes[:, :2], boxes[:, 2:] / 2
            boxes = np.concatenate([middle - half, middle + half], axis=1)
        best = kept(boxes, scores, classes, self.settings["iou"])
        return self.in_file(boxes[best], *size), scores[best], classes[best]

    def in_file(self, boxes: np.ndarray, height: int, width: int) -> np.ndarray:
        """Return boxes of the prepared image as boxes of the file: scaled, and without the border or the crop."""
        import numpy as np

        high, wide = self.settings["size"]
        if self.settings["normalized"]:
            boxes = boxes * np.array([wide, high] * 2, np.float32)
        top, left, tall, broad = 0, 0, high, wide
        if self.settings["fit"] != "stretch":
            ratio = (max if self.settings["fit"] == "letterbox" else min)(height / high, width / wide)
            tall, broad = max(1, round(height / ratio)), max(1, round(width / ratio))
            top, left = -((tall - high) // 2), -((broad - wide) // 2)
        placed = (boxes - np.array([left, top] * 2)) * np.array([width / broad, height / tall] * 2)
        return np.clip(placed, 0, [width, height] * 2).astype(np.float32)


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
    scores = outputs[0][4:]
    return outputs[0][:4].T, scores.max(axis=0), scores.argmax(axis=0)


def _yolov5(outputs: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    scores = outputs[0][:, 5:] * outputs[0][:, 4:5]
    return outputs[0][:, :4], scores.max(axis=1), scores.argmax(axis=1)


def _separate(outputs: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return each box with its label or, without an output of labels, once with each of the classes."""
    import numpy as np

    boxes, scores, *labels = outputs
    if labels:
        return boxes, scores, labels[0].astype(np.int64)
    count = scores.shape[1]
    return np.repeat(boxes, count, axis=0), scores.ravel(), np.tile(np.arange(count), len(boxes))
