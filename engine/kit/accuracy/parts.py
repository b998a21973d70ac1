"""Parts of an output: boxes and scores, or a price and a probability, stand in one tensor and are compared apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from engine.kit.accuracy import units

if TYPE_CHECKING:
    import numpy as np

    from engine.kit.inputs.cases import Case

_COORDINATES = 4
"""The number of coordinates of a box. A block of channels that holds boxes has at least so many channels."""
_SIZE = 1.5
"""A coordinate in pixels becomes larger than this number; a score is at most 1."""
_RANK = 3
"""The number of axes of a detector's output: batch, channels and places, in this order or with the last two swapped."""


@dataclass(frozen=True)
class Parts:
    """How one output is divided: the label of each part -> the indices of its channels along `axis`."""

    axis: int
    channels: Mapping[str, tuple[int, ...]]

    def of(self, output: np.ndarray) -> dict[str, np.ndarray]:
        """Return the label of each part -> the part."""
        return {label: output.take(indices, axis=self.axis) for label, indices in self.channels.items()}


def find(cases: Sequence[Case], *, columns: bool = True) -> dict[str, Parts]:
    """Return each output of the original that holds different quantities -> how the output is divided.

    YOLO, for example, gives [batch, 4 + classes, places] or [batch, places, 5 + classes]: coordinates in pixels beside
    scores from 0 to 1. One cosine over both would only show the coordinates, which are hundreds of times larger. The
    few columns of any other output are divided by `units.divide`, unless `columns` is False.
    """
    divided: dict[str, Parts] = {}
    for name in dict.fromkeys(name for case in cases for name in case.outputs):
        outputs = [case.outputs[name] for case in cases if name in case.outputs]
        if not all(each.dtype.kind == "f" and each.ndim in (_RANK - 1, _RANK) for each in outputs):
            continue
        parts = None
        if all(each.ndim == _RANK and each.size for each in outputs):
            parts = next((parts for axis in (1, 2) if (parts := _along(outputs, axis)) is not None), None)
        if parts is None and columns:
            parts = _columns(outputs)
        if parts is not None:
            divided[name] = parts
    return divided


def split(outputs: Mapping[str, np.ndarray], divided: Mapping[str, Parts]) -> dict[str, np.ndarray]:
    """Return the outputs of one call, with each divided output replaced by its parts: `name (boxes)`, for example."""
    result: dict[str, np.ndarray] = {}
    for name, output in outputs.items():
        if name in divided:
            result |= {f"{name} ({label})": part for label, part in divided[name].of(output).items()}
        else:
            result[name] = output
    return result


def split_cases(cases: Sequence[Case], divided: Mapping[str, Parts]) -> list[Case]:
    """Return the cases with the original's outputs divided into parts."""
    return [replace(case, outputs=split(case.outputs, divided)) for case in cases]


def _along(outputs: Sequence[np.ndarray], axis: int) -> Parts | None:
    """Return how outputs are divided along an axis; None where the channels do not fall into boxes and scores."""
    import numpy as np

    channels = outputs[0].shape[axis]
    places = outputs[0].shape[3 - axis]
    if not _COORDINATES < channels <= places or any(each.shape[axis] != channels for each in outputs):
        return None
    others = tuple(other for other in range(_RANK) if other != axis)
    with np.errstate(invalid="ignore"):
        largest = np.max([np.nanmax(each, axis=others) for each in outputs], axis=0)
        smallest = np.min([np.nanmin(each, axis=others) for each in outputs], axis=0)
    pixels, scores = largest > _SIZE, (smallest >= 0) & (largest <= 1)
    for first, second, labels in ((pixels, scores, ("boxes", "scores")), (scores, pixels, ("scores", "boxes"))):
        boundary = int(np.argmin(first)) if not first.all() else 0
        boxes = boundary if labels[0] == "boxes" else channels - boundary
        if boundary and second[boundary:].all() and boxes >= _COORDINATES:
            return Parts(axis, {labels[0]: tuple(range(boundary)), labels[1]: tuple(range(boundary, channels))})
    return None


def _columns(outputs: Sequence[np.ndarray]) -> Parts | None:
    """Return how the columns of outputs are divided; None where all columns hold about equal quantities."""
    import numpy as np

    count = outputs[0].shape[-1]
    if not 1 < count <= units.MOST or any(each.shape[-1] != count for each in outputs):
        return None
    rows = np.concatenate([each.reshape(-1, count) for each in outputs])
    groups = units.divide([column[np.isfinite(column)] for column in rows.T])
    if len(groups) == 1:
        return None
    return Parts(outputs[0].ndim - 1, {_label(group): group for group in groups})


def _label(columns: Sequence[int]) -> str:
    return f"column {columns[0]}" if len(columns) == 1 else f"columns {', '.join(map(str, columns))}"
