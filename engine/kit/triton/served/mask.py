"""Segmentation: turns logits into a mask with the class of each pixel, as `{name}_postprocess`."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


class Work:
    """The mask that `post_process_semantic_segmentation` of transformers gives for the size of the upright file.

    The setting `labels` names the classes.
    """

    def __init__(self, _: Path, settings: dict[str, Any]) -> None:
        self.labels = [label.encode("utf-8") for label in settings["labels"]]

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return `mask` [rows, 1], a PNG with the number of the class of each pixel, and `labels` [rows, classes].

        The labels are those of the classes in the mask, in the order of their numbers; shorter rows are filled up with
        "". Inputs: `logits` [rows, classes, height, width], and `image_sizes` [rows, 2], each the height and the width.
        """
        import numpy as np

        sizes = given["image_sizes"].tolist()
        masks = [classes_of(row, *size) for row, size in zip(given["logits"], sizes, strict=True)]
        classes = [np.flatnonzero(np.bincount(mask.ravel())).tolist() for mask in masks]
        labels = np.full((len(classes), max(map(len, classes))), b"", dtype=object)
        for row, numbers in enumerate(classes):
            labels[row, : len(numbers)] = [self.labels[number] for number in numbers]
        files = np.empty((len(masks), 1), dtype=object)
        files[:, 0] = [_png(mask) for mask in masks]
        return {"mask": files, "labels": labels}


def classes_of(logits: np.ndarray, height: int, width: int) -> np.ndarray:
    """Return the class of each pixel [height, width] of an image, of logits [classes, rows, columns] of any size.

    The logits are scaled as by `interpolate(mode="bilinear", align_corners=False)` of torch, but one line of pixels at
    a time, since those of all pixels of a photograph would take gigabytes. A pixel between four logits with one best
    class has this class, and nothing is computed for it.
    """
    import numpy as np

    grid = np.ascontiguousarray(logits.astype(np.float32, copy=False).transpose(1, 2, 0))
    best = grid.argmax(axis=2)
    left, right, share = _neighbours(grid.shape[1], width)
    mask = np.empty((height, width), np.uint8 if len(logits) <= 256 else np.uint16)  # noqa: PLR2004 - a byte
    for line, above, below, part in zip(mask, *_neighbours(len(grid), height), strict=True):
        line[:], *others = best[above, left], best[above, right], best[below, left], best[below, right]
        mixed = np.flatnonzero(np.any(np.array(others) != line, axis=0))
        first, second, by = left[mixed], right[mixed], share[mixed, None]
        upper, lower = (grid[row, first] * (1 - by) + grid[row, second] * by for row in (above, below))
        line[mixed] = (upper * (1 - part) + lower * part).argmax(axis=1)
    return mask


def _neighbours(size: int, wanted: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return for each of `wanted` places the two neighbours among `size` places, and the share of the second one."""
    import numpy as np

    scale = np.float32(size) / np.float32(wanted)
    places = np.maximum(scale * (np.arange(wanted, dtype=np.float32) + np.float32(0.5)) - np.float32(0.5), 0)
    first = np.minimum(places.astype(np.int64), size - 1)
    return first, np.minimum(first + 1, size - 1), (places - first).astype(np.float32)


def _png(mask: np.ndarray) -> bytes:
    from PIL import Image

    Image.fromarray(mask).save(file := io.BytesIO(), "PNG")
    return file.getvalue()
