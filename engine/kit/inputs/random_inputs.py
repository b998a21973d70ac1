"""Random inputs: seeded tensors for a model without samples, within the limits of its graph and profiles."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, repeat
from typing import TYPE_CHECKING

from engine.kit.inputs import synthetic
from engine.kit.inputs.token_rows import Row, RowLimits, Vocabulary
from engine.kit.onnx import onnx_source
from engine.kit.onnx.onnx_files import Input
from engine.recipe import shape_values
from engine.recipe.fields import EXTENTS
from engine.runtimes import axes

if TYPE_CHECKING:
    import numpy as np

    from engine.recipe.shape_values import Values
    from engine.recipe.values import Profile

SEED = 21
_LENGTHS = (3, 8, 16, 33, 64, 128)
"""The lengths of random rows in tokens: short and long, some of them powers of two."""
_LONGEST = 512
"""The largest number of tokens of a random row, unless the model needs longer rows.

Most encoder models have embeddings for 512 positions.
"""
_UNSEEN = ({"batch": 1, "other": 16}, {"batch": 2, "other": 24}, {"batch": 3, "other": 9})
"""Sets of extents for dynamic axes without a profile: `batch` for an input's first axis, `other` for later axes."""
_LARGEST = 1 << 23
"""The largest number of elements of a random tensor, because images of a profile's maximum may need gigabytes."""
_NAME = re.compile(r"(^|_)(len|lens|length|lengths)$", re.IGNORECASE)


def rows(vocabulary: Vocabulary, limits: RowLimits, *, seed: int = SEED) -> list[Row]:
    """Return random rows of tokens, of different lengths within the limits."""
    low, high = limits.sequence
    lengths = sorted({min(max(low, length), high or length) for length in (*_LENGTHS, high or _LENGTHS[-1])})
    return synthetic.rows(seed, vocabulary, [length for length in lengths if length <= max(_LONGEST, low)])


def tensors(
    specs: Mapping[str, Input],
    ranges: Mapping[str, int],
    profiles: Sequence[Profile],
    *,
    values: Sequence[Mapping[str, Values]] = (),
    seed: int = SEED,
    largest: float = _LARGEST,
) -> Iterator[dict[str, np.ndarray]]:
    """Yield sets of random inputs. Floats are normally distributed, integers are below `ranges`, and masks are 0 or 1.

    Lengths of rows (`full_rows`) are from 1 to the length of a full row.

    Each profile gives three sets of inputs, with the profile's minimum, optimum and maximum extents. Inputs whose
    values the profiles state, in `values`, have the minimum, optimum and maximum of these values. A set of inputs with
    a tensor of more than `largest` elements is left out. Raises StepError for an input of unknown shape or of a type
    that numpy lacks.
    """
    import numpy as np

    generator = np.random.default_rng(seed)
    for spec in specs.values():
        onnx_source.refuse_unusual(spec)
        onnx_source.refuse_unranked(spec)
    named = [axes.by_name(profile, axes.shapes(specs)) for profile in profiles]
    ends = (shape_values.at(end, profile) for profile in values for end in EXTENTS)
    for extents, stated in zip(_extents(named), chain(ends, repeat({})), strict=False):
        shapes = synthetic.shapes(specs, extents, first=extents["batch"], other=extents["other"])
        if extents is not _UNSEEN[0] and max(math.prod(shape) for shape in shapes.values()) > largest:
            continue
        full = full_rows(specs, shapes)
        drawn = {
            name: generator.integers(1, full[name] + 1, shape).astype(specs[name].dtype)
            if name in full
            else _draw(generator, specs[name], shape, ranges.get(name))
            for name, shape in shapes.items()
        }
        yield {**drawn, **as_stated(drawn, stated)}


def as_stated(inputs: Mapping[str, np.ndarray], values: Mapping[str, Sequence[int]]) -> dict[str, np.ndarray]:
    """Return the inputs whose values a profile states, with these values in place of random ones."""
    import numpy as np

    return {name: np.array(each, inputs[name].dtype).reshape(inputs[name].shape) for name, each in values.items()}


def vocabulary(specs: Mapping[str, Input], ranges: Mapping[str, int]) -> Vocabulary:
    """Return the numbers of token ids and token types for which a graph has embeddings; 2 for an unknown number."""
    types = ranges.get("token_type_ids", 2) if "token_type_ids" in specs else 1
    return Vocabulary(tokens=ranges.get("input_ids", 2), types=types)


def limits(specs: Mapping[str, Input], profile: Profile, longest: int | None) -> RowLimits:
    """Return the limits of batch size and sequence length, the profile's or, for an axis without one, the graph's."""
    free = RowLimits.of(specs, longest)
    named = axes.by_name(profile, axes.shapes(specs))
    ranges = [named.get(axis) if isinstance(axis, str) else None for axis in specs["input_ids"].shape]
    batch, sequence = ((limit.min, limit.max) if limit else None for limit in ranges)
    return RowLimits(batch=batch or free.batch, sequence=sequence or free.sequence)


def _extents(profiles: Sequence[Profile]) -> Iterator[Mapping[str, int]]:
    """Yield, for each set of inputs, the name of each axis -> its extent."""
    for profile in profiles:
        for end in EXTENTS:
            yield {**_UNSEEN[0], **{axis: int(getattr(limit, end)) for axis, limit in profile.items()}}
    if not profiles:
        yield from _UNSEEN


def _draw(generator: np.random.Generator, value: Input, shape: tuple[int, ...], rows: int | None) -> np.ndarray:
    if "mask" in value.name.lower() and not value.dtype.startswith("float"):
        return synthetic.random_mask(generator, shape).astype(value.dtype)
    return synthetic.tensor(generator, value.dtype, shape, below=rows)


def full_rows(specs: Mapping[str, Input], shapes: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
    """Return the name of each input of row lengths -> the length of a full row, for inputs of these shapes.

    An input of row lengths is an integer per row, [batch], and its name ends in `lengths` or a similar word. The rows
    are those of the first other input with the same first axis; they run along its first dynamic axis after the first,
    or its second axis where none is dynamic. Without this rule, random lengths would be wrong: operators refuse a
    length beyond the row, and models answer NaN for a row of length 0.
    """
    axes_of = axes.shapes(specs)
    full: dict[str, int] = {}
    for name, spec in specs.items():
        if spec.dtype not in {"int32", "int64"} or len(axes_of[name]) != 1 or not _NAME.search(name):
            continue
        rows = [other for other, shape in axes_of.items() if len(shape) > 1 and shape[0] == axes_of[name][0]]
        if rows:
            after = axes_of[rows[0]][1:]
            full[name] = shapes[rows[0]][1 + next((i for i, axis in enumerate(after) if isinstance(axis, str)), 0)]
    return full
