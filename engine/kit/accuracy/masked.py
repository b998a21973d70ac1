"""Masked values: large negative numbers that stand for minus infinity count as the smallest number that is compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    from engine.kit.inputs.cases import Case

_LEAST = 1e4
"""The least size of a number that stands for minus infinity; models use -1e4, -1e9 or the smallest float32 number."""
_LARGER = 100.0
"""A number that stands for minus infinity is so many times larger than every other number of its output."""
_SAME = 1e-6
"""All numbers of an output that stand for minus infinity are equal up to this share: float32 rounds a small summand."""


@dataclass(frozen=True)
class Masked:
    """The number that stands for minus infinity in one output, and the number as which this number counts."""

    stands: float
    counts: float


def find(cases: Sequence[Case]) -> dict[str, Masked]:
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


def clip_cases(cases: Sequence[Case], masked: Mapping[str, Masked]) -> list[Case]:
    """Return the cases with the original's outputs clipped."""
    return [replace(case, outputs=clip(case.outputs, masked)) for case in cases]


def notes(masked: Mapping[str, Masked]) -> tuple[str, ...]:
    """Return what a report says of the numbers that stand for minus infinity."""
    return tuple(
        f"{each.stands:.3g} in {name} stands for minus infinity and counts as {each.counts:.3g}"
        for name, each in masked.items()
    )


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
