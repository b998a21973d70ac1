"""Size search: sizes of a model's axes with which an ONNX model runs, for a new recipe and for the hint of an error."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, product

from engine.kit.inputs import random_inputs
from engine.kit.inputs.cases import Case
from engine.kit.reference.original_model import Original
from engine.recipe.fields import EXTENTS
from engine.recipe.values import Range
from engine.runtimes import axes

_SECONDS = 15.0
"""The search ends after these seconds, between two runs of the model."""
_MOST_ELEMENTS = 1 << 23
"""The largest number of elements of an input that the search tries."""
_SIZES = (1, 2, 4, 8, 16, 32, 48, 64, 80, 96, 128, 160, 192, 224, 256, 320, 384, 448, 512, 640, 768, 1024, 2048, 4096,
          8000, 16000, 32000)  # fmt: skip
_MOST_COMBINATIONS = 1 << 17
_MOST_NAMED = 256
"""The largest number of combinations that are tried of sizes that errors of the runtime name or that weights have."""
_NUMBER = r"(?<![\w.])(?:[2-9]|[1-9][0-9]{1,5})(?![\w.])"
"""Matches a size in the text of an error; size 1 is not meant, because it fits wherever tensors are broadcast."""
_WIDER = 2
"""The number of next smaller and next larger sizes that a proposed range contains."""

Sizes = Mapping[str, int]


def fitting(original: Original, guess: Mapping[str, Range]) -> dict[str, Range] | None:
    """Return the guess if the original runs with its minima, optima and maxima, else ranges near to its optima.

    Returns None where the search finds no sizes in its time.
    """
    search = _Search(original)
    if all(search.runs({axis: getattr(each, end) for axis, each in guess.items()}) for end in EXTENTS):
        return dict(guess)
    return _near(_Search(original, time.monotonic() + _SECONDS), {axis: each.opt for axis, each in guess.items()})


def near(original: Original, case: Case) -> dict[str, Range] | None:
    """Return sizes with which the original runs, as similar as possible to the sizes in a case on which it fails.

    Returns None where the search finds no such sizes in its time.
    """
    failing: dict[str, int] = {}
    for name, shape in axes.shapes(original.input_specs).items():
        failing |= {
            axis: size for axis, size in zip(shape, case.inputs[name].shape, strict=True) if isinstance(axis, str)
        }
    return _near(_Search(original, time.monotonic() + _SECONDS), failing)


def _near(search: _Search, failing: Sizes) -> dict[str, Range] | None:
    shapes = axes.shapes(search.original.input_specs)
    leading = {shape[0]: 1 for shape in shapes.values() if shape and isinstance(shape[0], str)}
    start = {axis: leading.get(axis, failing[axis]) for axis in axes.free(shapes)}
    searched = [axis for axis in start if axis not in leading] or list(start)
    nearest = [start[axis] for axis in searched]
    half = time.monotonic() + _SECONDS / 2
    for sizes in chain([nearest], _combinations(nearest)):
        candidate = start | dict(zip(searched, sizes, strict=True))
        if search.runs(candidate):
            return _widened(candidate, search)
        if time.monotonic() > half:
            break
    named = _with_sizes_of_the_model(start, search)
    return None if named is None else _widened(named, search)


def _with_sizes_of_the_model(start: Sizes, search: _Search) -> Sizes | None:
    """Return the first sizes that run: `start` with sizes that errors name or that weights have."""
    queue: list[Sizes] = [start]
    for sizes in queue:
        if search.runs(sizes):
            return sizes
        named = map(int, re.findall(_NUMBER, str(search.error)))
        numbers = dict.fromkeys((*named, *search.original.stored_sizes))
        others = ({**sizes, axis: number} for number in numbers for axis in sizes)
        queue += [other for other in others if other not in queue and len(queue) < _MOST_NAMED]
    return None


@dataclass
class _Search:
    original: Original
    until: float = math.inf
    error: Exception | None = None
    """The error of the last run that failed."""

    def runs(self, sizes: Sizes) -> bool:
        """Tell whether the original runs with these sizes; False after the end of the search."""
        if time.monotonic() > self.until:
            return False
        profile = {axis: Range(min=size, opt=size, max=size) for axis, size in sizes.items()}
        drawn = random_inputs.tensors(self.original.input_specs, self.original.ranges, [profile], largest=math.inf)
        specs = axes.shapes(self.original.input_specs).values()
        if any(math.prod(axes.extent(axis, sizes) or 1 for axis in shape) > _MOST_ELEMENTS for shape in specs):
            return False
        try:
            self.original.answer(next(drawn))
        except Exception as error:  # noqa: BLE001  ONNX Runtime raises errors of many kinds
            self.error = error
            return False
        return True


def _combinations(start: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield sizes to try: equal sizes of all axes first, then all combinations, in both cases the nearest first."""

    def distance(sizes: Sequence[int]) -> float:
        return sum(abs(math.log(size / near)) for size, near in zip(sizes, start, strict=True))

    yield from sorted(((size,) * len(start) for size in _SIZES), key=distance)
    count = len(_SIZES)
    while count ** len(start) > _MOST_COMBINATIONS:
        count -= 1
    yield from sorted(product(*(_nearest(size, count) for size in start)), key=distance)


def _nearest(size: int, count: int) -> list[int]:
    return sorted(_SIZES, key=lambda other: abs(math.log(other / size)))[:count]


def _widened(sizes: Sizes, search: _Search) -> dict[str, Range]:
    """Return ranges around sizes with which the model runs; the model also runs with all minima and all maxima.

    Axes that cannot have other sizes alone, such as the batches of two inputs, are widened together.
    """
    ranges = {axis: Range(min=size, opt=size, max=size) for axis, size in sizes.items()}
    fixed: dict[int, list[str]] = {}
    for axis, size in sizes.items():
        ranges |= _together([axis], size, ranges, search.runs)
        if ranges[axis].min == ranges[axis].max:
            fixed.setdefault(size, []).append(axis)
    for size, tied in fixed.items():
        if len(tied) > 1:
            ranges |= _together(tied, size, ranges, search.runs)
    return ranges


def _together(
    tied: Sequence[str], size: int, ranges: Mapping[str, Range], runs: Callable[[Sizes], bool]
) -> dict[str, Range]:
    """Return wider ranges of axes that have one size, where the model runs with the wider ranges of these axes."""
    larger = [each for each in _SIZES if each > size][:_WIDER]
    smaller = [each for each in reversed(_SIZES) if each < size][:_WIDER]
    most = {axis: extents.max for axis, extents in ranges.items()}
    least = {axis: extents.min for axis, extents in ranges.items()}
    high = low = size
    for each in larger:
        if not runs(most | dict.fromkeys(tied, each)):
            break
        high = each
    for each in smaller:
        if not runs(least | dict.fromkeys(tied, each)):
            break
        low = each
    return dict.fromkeys(tied, Range(min=low, opt=size, max=high))
