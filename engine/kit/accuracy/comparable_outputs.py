"""Comparable outputs: different quantities in one tensor are compared apart, and masked values are clipped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    from engine.kit.inputs.cases import Case


_COORDINATES = 4
"""The number of coordinates of a box. A block of channels that holds boxes has at least so many channels."""
_SIZE = 1.5
"""A coordinate in pixels becomes larger than this number; a score is at most 1."""
_RANK = 3
"""The number of axes of a detector's output: batch, channels and places, in this order or with the last two swapped."""
_MOST_COLUMNS = 16
"""The largest number of columns that may hold different quantities; a vector with more columns is an embedding."""
_APART = 20.0
"""Two groups of columns hold different quantities where the numbers of one group are so many times larger."""
_WHOLE = 2.0
"""Whole numbers are numbers of classes where they differ by at least this number; flags are 0 or 1."""
_LEAST = 1e4
"""The least size of a number that stands for minus infinity; models use -1e4, -1e9 or the smallest float32 number."""
_LARGER = 100.0
"""A number that stands for minus infinity is so many times larger than every other number of its output."""
_SAME = 1e-6
"""All numbers of an output that stand for minus infinity are equal up to this share: float32 rounds a small summand."""


@dataclass(frozen=True)
class Parts:
    """How one output is divided: the label of each part -> the indices of its channels along `axis`."""

    axis: int
    channels: Mapping[str, tuple[int, ...]]

    def of(self, output: np.ndarray) -> dict[str, np.ndarray]:
        """Return the label of each part -> the part."""
        return {label: output.take(indices, axis=self.axis) for label, indices in self.channels.items()}


@dataclass(frozen=True)
class Masked:
    """The number that stands for minus infinity in one output, and the number as which this number counts."""

    stands: float
    counts: float


@dataclass(frozen=True)
class Comparable:
    """How the outputs of a model become comparable: large negative numbers are clipped, and quantities are split."""

    masked: Mapping[str, Masked]
    divided: Mapping[str, Parts]

    @classmethod
    def of(cls, cases: Sequence[Case], boxes_along: Mapping[str, int] = MappingProxyType({})) -> Comparable:
        """Return how the original's outputs of these cases, and those of a built model, become comparable.

        `boxes_along` says of outputs where their boxes are; "" stands for the only output.
        """
        masked = find_masked(cases)
        divided = find([replace(case, outputs=clip(case.outputs, masked)) for case in cases])
        every = {name: output.shape for case in cases for name, output in case.outputs.items()}
        for name, shape in every.items():
            axis = boxes_along.get(name, boxes_along.get("") if len(every) == 1 else None)
            if axis is not None and len(shape) == _RANK and shape[axis] > _COORDINATES:
                numbers = tuple(range(shape[axis]))
                divided[name] = Parts(axis, {"boxes": numbers[:_COORDINATES], "scores": numbers[_COORDINATES:]})
        return cls(masked, divided)

    def outputs(self, outputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the outputs of one call in their comparable form."""
        return split(clip(outputs, self.masked), self.divided)

    def notes(self) -> tuple[str, ...]:
        """Return what a report says of the numbers that stand for minus infinity."""
        return tuple(
            f"{each.stands:.3g} in {name} stands for minus infinity and counts as {each.counts:.3g}"
            for name, each in self.masked.items()
        )


def find(cases: Sequence[Case], *, columns: bool = True) -> dict[str, Parts]:
    """Return each output of the original that holds different quantities -> how the output is divided.

    YOLO, for example, gives [batch, 4 + classes, places] or [batch, places, 5 + classes]: coordinates in pixels beside
    scores from 0 to 1. One cosine over both would only show the coordinates, which are hundreds of times larger. The
    few columns of any other output are divided by `divide`, unless `columns` is False.
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
    if not 1 < count <= _MOST_COLUMNS or any(each.shape[-1] != count for each in outputs):
        return None
    rows = np.concatenate([each.reshape(-1, count) for each in outputs])
    groups = divide([column[np.isfinite(column)] for column in rows.T])
    if len(groups) == 1:
        return None
    return Parts(outputs[0].ndim - 1, {_label(group): group for group in groups})


def _label(columns: Sequence[int]) -> str:
    return f"column {columns[0]}" if len(columns) == 1 else f"columns {', '.join(map(str, columns))}"


def divide(columns: Sequence[np.ndarray]) -> list[tuple[int, ...]]:
    """Return the indices of columns in groups, so that the columns of a group hold about equal quantities.

    A detector with its own selection of boxes, for example, gives rows of four coordinates in pixels, a score and the
    number of a class. A price and a probability may also stand side by side. Whole numbers are a group. All other
    columns are ordered by their largest numbers, and divided where these numbers lie far apart; columns of numbers from
    0 to 1 count as equally large, because they are probabilities.
    """
    whole = [index for index, values in enumerate(columns) if _counts(values)]
    if len(whole) == len(columns):
        whole = []
    rest = [index for index in range(len(columns)) if index not in whole]
    most = max((_largest(columns[index]) for index in rest), default=0.0)
    sizes = {index: _size(columns[index], most) for index in rest}
    groups: list[list[int]] = []
    for index in sorted(rest, key=lambda index: -sizes[index]):
        if not groups or sizes[index] * _APART < sizes[groups[-1][-1]]:
            groups.append([])
        groups[-1].append(index)
    return [tuple(sorted(group)) for group in (*groups, whole) if group]


def _counts(values: np.ndarray) -> bool:
    """Whether a column holds whole numbers that are no flags."""
    import numpy as np

    return bool(values.size and (values == np.round(values)).all() and np.ptp(values) >= _WHOLE)


def _size(values: np.ndarray, most: float) -> float:
    """Return the largest absolute value of a column, or `most` for a column of zeros.

    A column of probabilities has the size 1 beside much larger columns, and `most` beside other columns.
    """
    largest = _largest(values)
    if not largest:
        return most
    return (1.0 if most > _APART else most) if values.min() >= 0 and largest <= 1 else largest


def _largest(values: np.ndarray) -> float:
    return float(abs(values).max(initial=0))


def find_masked(cases: Sequence[Case]) -> dict[str, Masked]:
    """Return each output of the original with a number that stands for minus infinity -> that number.

    A policy, for example, gives forbidden actions the logit -1e9. Beside such a number, all other numbers of the output
    would be rounding errors: the cosine, the error and the near ties would show the mask alone.
    """
    masked = {}
    for name in dict.fromkeys(name for case in cases for name in case.outputs):
        smallest = min((float(values.min()) for values in _finite(name, cases)), default=0.0)
        if smallest <= -_LEAST:
            limit = smallest * (1 - _SAME)
            largest = max((float(abs(values).max()) for values in _finite(name, cases, above=limit)), default=0.0)
            if 0 < largest * _LARGER <= -smallest:
                masked[name] = Masked(smallest, -largest)
    return masked


def clip(outputs: Mapping[str, np.ndarray], masked: Mapping[str, Masked]) -> dict[str, np.ndarray]:
    """Return the outputs of one call, in which no number is smaller than the smallest number that is compared."""
    import numpy as np

    return {
        name: np.maximum(output, np.asarray(masked[name].counts, output.dtype))
        if name in masked and output.dtype.kind == "f"
        else output
        for name, output in outputs.items()
    }


def _finite(name: str, cases: Sequence[Case], *, above: float | None = None) -> Iterator[np.ndarray]:
    """Yield the finite numbers of an output, case by case; with `above`, only the larger numbers."""
    import numpy as np

    for case in cases:
        output = case.outputs.get(name)
        if output is not None and output.dtype.kind == "f":
            values = output[np.isfinite(output)]
            values = values if above is None else values[values > above]
            if values.size:
                yield values
