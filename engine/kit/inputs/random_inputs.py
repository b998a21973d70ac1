"""Seeded random tensors for a model that comes without samples, within what its graph and profiles allow."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from engine.errors import StepError
from engine.kit.inputs import synthetic, tensor_samples
from engine.kit.inputs.token_rows import Row, RowLimits, Vocabulary
from engine.kit.onnx.onnx_files import Input

if TYPE_CHECKING:
    import numpy as np

    from engine.recipe.schema import Profile

SEED = 21
_LENGTHS = (3, 8, 16, 33, 64, 128)
_LONGEST = 512
"""Tokens of the longest random row, unless the model takes no shorter one: what most encoders have positions for."""
_UNSEEN = ({"batch": 1, "other": 16}, {"batch": 2, "other": 24}, {"batch": 3, "other": 9})
"""Extents of dynamic axes that no profile mentions: a first axis is a batch, any other holds something like time."""
_LARGEST = 1 << 23
"""Elements of one random tensor: the far end of a profile for images may be gigabytes."""


def rows(vocabulary: Vocabulary, limits: RowLimits, *, seed: int = SEED) -> list[Row]:
    """Return random rows of tokens, of various lengths within the limits."""
    low, high = limits.sequence
    lengths = sorted({min(max(low, length), high or length) for length in (*_LENGTHS, high or _LENGTHS[-1])})
    return synthetic.rows(seed, vocabulary, [length for length in lengths if length <= max(_LONGEST, low)])


def tensors(
    wanted: Mapping[str, Input],
    ranges: Mapping[str, int],
    profiles: Sequence[Profile],
    *,
    seed: int = SEED,
    largest: float = _LARGEST,
) -> Iterator[dict[str, np.ndarray]]:
    """Yield sets of random inputs: floats from a normal distribution, integers below `ranges`, masks of 0 and 1.

    Each profile gives its least, its usual and its greatest extents, but none with more than `largest` elements.
    Raises StepError for an input whose shape or type leaves nothing to draw.
    """
    import numpy as np

    generator = np.random.default_rng(seed)
    for value in wanted.values():
        _refuse_unknown(value)
    for extents in _extents(profiles):
        shapes = {
            name: synthetic.shape(value, extents, first=extents["batch"], other=extents["other"])
            for name, value in wanted.items()
        }
        if extents is not _UNSEEN[0] and max(math.prod(shape) for shape in shapes.values()) > largest:
            continue
        yield {name: _draw(generator, wanted[name], shape, ranges.get(name)) for name, shape in shapes.items()}


def vocabulary(wanted: Mapping[str, Input], ranges: Mapping[str, int]) -> Vocabulary:
    """Return which tokens and types a text graph shows room for; two of each where it shows nothing."""
    types = ranges.get("token_type_ids", 2) if "token_type_ids" in wanted else 1
    return Vocabulary(tokens=ranges.get("input_ids", 2), types=types)


def limits(wanted: Mapping[str, Input], profile: Profile, longest: int | None) -> RowLimits:
    """Return the batch and sequence lengths that a text graph and a profile allow together."""
    free = RowLimits.of(wanted, longest)
    axes = wanted["input_ids"].shape
    said = [profile.get(axis) if isinstance(axis, str) else None for axis in axes]
    batch, sequence = ((limit.min, limit.max) if limit else None for limit in said)
    return RowLimits(batch=batch or free.batch, sequence=sequence or free.sequence)


def _extents(profiles: Sequence[Profile]) -> Iterator[Mapping[str, int]]:
    for profile in profiles:
        for end in ("min", "opt", "max"):
            yield {"batch": 1, "other": 16, **{axis: int(getattr(limit, end)) for axis, limit in profile.items()}}
    if not profiles:
        yield from _UNSEEN


def _refuse_unknown(value: Input) -> None:
    tensor_samples.refuse_unusual(value)
    if not value.ranked:
        raise StepError(f"the model does not tell the shape of its input {value.name}", hint="give samples as .npz")


def _draw(generator: np.random.Generator, value: Input, shape: tuple[int, ...], rows: int | None) -> np.ndarray:
    if "mask" in value.name.lower() and not value.dtype.startswith("float"):
        return synthetic.random_mask(generator, shape).astype(value.dtype)
    return synthetic.tensor(generator, value.dtype, shape, below=rows)
