"""Seeded random tensors for a model that comes without samples, within what its graph and profiles allow."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from engine.errors import StepError
from engine.kit.inputs import tensor_samples, token_rows
from engine.kit.inputs.token_rows import Limits, Row, Vocabulary
from engine.kit.onnx.onnx_files import Input

if TYPE_CHECKING:
    import numpy as np
    import onnx

    from engine.recipe.schema import Profile

SEED = 21
_LENGTHS = (3, 8, 16, 33, 64, 128)
_UNSEEN = ({"batch": 1, "other": 16}, {"batch": 2, "other": 24}, {"batch": 3, "other": 9})
"""Extents of dynamic axes that no profile mentions: a first axis is a batch, any other holds something like time."""
_LARGEST = 1 << 23
"""Elements of one random tensor: the far end of a profile for images may be gigabytes."""

_PASS_ON = frozenset({"Cast", "Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"})
"""Operators that change a tensor's shape or type but not its values."""
_EMBED = frozenset({"EmbedLayerNormalization", "QEmbedLayerNormalization"})
_EMBED_TABLES = {0: 2, 1: 4}
"""Of ONNX Runtime's fused embedding: ids are its input 0, looked up in input 2; segments input 1, in 4."""


def rows(vocabulary: Vocabulary, limits: Limits, *, seed: int = SEED) -> list[Row]:
    """Return random rows of tokens, of various lengths within the limits."""
    import numpy as np

    generator = np.random.default_rng(seed)
    low, high = limits.sequence
    lengths = sorted({min(max(low, length), high or length) for length in (*_LENGTHS, high or _LENGTHS[-1])})
    return [token_rows.draw(generator, vocabulary, length) for length in lengths if length <= max(512, low)]


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
        shapes = {name: _shape(value, extents) for name, value in wanted.items()}
        if extents is not _UNSEEN[0] and max(math.prod(shape) for shape in shapes.values()) > largest:
            continue
        yield {name: _draw(generator, wanted[name], shape, ranges.get(name)) for name, shape in shapes.items()}


def ranges(model: onnx.ModelProto) -> dict[str, int]:
    """Return, for integer inputs that are looked up in a table, how many rows the table has.

    Followed are `Gather` and ONNX Runtime's fused embedding, behind operators that leave the values as they are.
    """
    origin = {value.name: value.name for value in model.graph.input}
    sizes = {tensor.name: tuple(tensor.dims) for tensor in model.graph.initializer}
    found: dict[str, int] = {}
    for node in model.graph.node:
        if node.op_type in _PASS_ON and node.input[0] in origin:
            origin[node.output[0]] = origin[node.input[0]]
        if node.op_type in _PASS_ON | {"DequantizeLinear"} and node.input[0] in sizes:
            sizes[node.output[0]] = sizes[node.input[0]]
        for indices, rows in _lookups(node, sizes):
            if indices in origin:
                name = origin[indices]
                found[name] = min(rows, found.get(name, rows))
    return found


def vocabulary(wanted: Mapping[str, Input], ranges: Mapping[str, int]) -> Vocabulary:
    """Return which tokens and types a text graph shows room for; two of each where it shows nothing."""
    types = ranges.get("token_type_ids", 2) if "token_type_ids" in wanted else 1
    return Vocabulary(tokens=ranges.get("input_ids", 2), types=types)


def limits(wanted: Mapping[str, Input], profile: Profile, longest: int | None) -> Limits:
    """Return the batch and sequence lengths that a text graph and a profile allow together."""
    free = Limits.of(wanted, longest)
    axes = wanted["input_ids"].shape
    said = [profile.get(axis) if isinstance(axis, str) else None for axis in axes]
    batch, sequence = ((limit.min, limit.max) if limit else None for limit in said)
    return Limits(batch=batch or free.batch, sequence=sequence or free.sequence)


def _lookups(node: onnx.NodeProto, sizes: Mapping[str, tuple[int, ...]]) -> Iterator[tuple[str, int]]:
    """Yield the names of index tensors, each with the rows of the table that it looks into."""
    if node.op_type == "Gather" and sizes.get(node.input[0]):
        axis = next((attribute.i for attribute in node.attribute if attribute.name == "axis"), 0)
        yield node.input[1], sizes[node.input[0]][axis]
    if node.op_type in _EMBED:
        for indices, table in _EMBED_TABLES.items():
            if sizes.get(node.input[table]):
                yield node.input[indices], sizes[node.input[table]][0]


def _extents(profiles: Sequence[Profile]) -> Iterator[Mapping[str, int]]:
    for profile in profiles:
        for end in ("min", "opt", "max"):
            yield {"batch": 1, "other": 16, **{axis: int(getattr(limit, end)) for axis, limit in profile.items()}}
    if not profiles:
        yield from _UNSEEN


def _shape(value: Input, extents: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(
        size if isinstance(size, int) else extents.get(size, extents["other" if axis else "batch"])
        for axis, size in enumerate(value.shape)
    )


def _refuse_unknown(value: Input) -> None:
    tensor_samples.refuse_unusual(value)
    if not value.ranked:
        raise StepError(f"the model does not tell the shape of its input {value.name}", hint="give samples as .npz")


def _draw(generator: np.random.Generator, value: Input, shape: tuple[int, ...], rows: int | None) -> np.ndarray:
    import numpy as np

    if value.dtype.startswith("float"):
        return generator.standard_normal(shape).astype(value.dtype)
    if "mask" in value.name.lower():
        return _mask(generator, shape).astype(value.dtype)
    if rows is None:
        rows = 256 if value.dtype == "uint8" else 2  # bytes are pixels
    return np.asarray(generator.integers(0, max(1, rows), shape)).astype(value.dtype)


def _mask(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Return ones with a tail of zeros along the last axis; the first place is always visible."""
    import numpy as np

    if not shape:
        return np.ones(shape)
    visible = generator.integers(1, shape[-1] + 1, (*shape[:-1], 1))
    return np.asarray(np.arange(shape[-1]) < visible)
