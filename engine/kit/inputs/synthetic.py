"""Synthetic inputs: tensors of a given shape and type, rows of tokens, and masks, all drawn from a seeded generator."""

# Every maker of random inputs draws here: the inputs of reference and calibration (`random_inputs`), of bench
# (`bench_inputs`), of export (`kit/reference/probes`) and of the comparison after fusion (`kit/accuracy/equivalence`).
# Each maker has a seed and shapes of its own. Reports and artifacts depend on the order of the draws.

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from engine.errors import StepError
from engine.runtimes import axes

if TYPE_CHECKING:
    import numpy as np

    from engine.kit.inputs.token_rows import Row, Vocabulary
    from engine.kit.onnx.onnx_files import Input

MASKS = ("full", "right-padded", "left-padded", "holed")
"""The names of the kinds of mask that the function `mask` makes."""
_PIXELS = 256
"""A uint8 tensor usually holds pixels, whose values are 0 to 255."""
_FLOATS = frozenset({"float16", "float32", "float64"})


def shapes(
    specs: Mapping[str, Input], extents: Mapping[str, int], *, first: int, other: int
) -> dict[str, tuple[int, ...]]:
    """Return the shape of each input, with `extents` for the dynamic axes by their names.

    A dynamic axis without an extent gets `first` where it is the first axis of an input, which is usually the batch,
    else `other`. An axis that several inputs share has one extent. The extent of an axis such as `past + 1` follows
    from the other axes.
    """
    axes_of = axes.shapes(specs)
    leading = {axis for shape in axes_of.values() for axis in shape[:1]}
    sizes = {axis: extents.get(axis, first if axis in leading else other) for axis in axes.free(axes_of)}
    return {
        name: tuple(other if (size := axes.extent(axis, sizes)) is None else size for axis in shape)
        for name, shape in axes_of.items()
    }


def tensor(
    generator: np.random.Generator, dtype: str, shape: tuple[int, ...], *, below: int | None = None
) -> np.ndarray:
    """Return a random tensor: floats from the standard normal distribution, integers from 0 to `below` - 1.

    Without `below`, a uint8 tensor has values from 0 to 255, and any other integer or bool tensor has the values 0 and
    1. Raises StepError for a type of numbers that numpy lacks.
    """
    import numpy as np

    if dtype in _FLOATS:
        return generator.standard_normal(shape).astype(dtype)
    if not dtype.startswith(("int", "uint", "bool")):
        raise StepError(f"no random values can be drawn of the type {dtype}")
    if below is None:
        below = _PIXELS if dtype == "uint8" else 2
    return np.asarray(generator.integers(0, max(1, below), shape)).astype(dtype)


def row(generator: np.random.Generator, vocabulary: Vocabulary, length: int) -> Row:
    """Return a random row of `length` tokens without padding. The second half of the row has the last token type."""
    import numpy as np

    ids = generator.integers(0, vocabulary.tokens, (1, length))
    if vocabulary.tokens > 1:
        ids = np.where(ids == vocabulary.pad, (vocabulary.pad + 1) % vocabulary.tokens, ids)
    types = (np.arange(length) >= length / 2)[None] * max(0, vocabulary.types - 1)
    return {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": types.astype(np.int64)}


def rows(seed: int, vocabulary: Vocabulary, lengths: Iterable[int]) -> list[Row]:
    """Return a random row of tokens for each length; one generator draws the rows in the order of the lengths."""
    import numpy as np

    generator = np.random.default_rng(seed)
    return [row(generator, vocabulary, length) for length in lengths]


def random_mask(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Return a bool mask whose first positions along the last axis are true; their number is random and at least 1."""
    import numpy as np

    if not shape:
        return np.ones(shape)
    visible = generator.integers(1, shape[-1] + 1, (*shape[:-1], 1))
    return np.asarray(np.arange(shape[-1]) < visible)


def mask(kind: str, shape: tuple[int, int]) -> np.ndarray:
    """Return a mask of the given kind, one of `MASKS`: bool [batch, sequence].

    In a mask with padding, each row has two visible positions fewer than the row before. At least one position stays
    visible, because a softmax over no position is undefined.
    """
    import numpy as np

    batch, length = shape
    visible = np.maximum(1, length - 2 * np.arange(batch))[:, None]
    position = np.arange(length)[None, :]
    masks: Mapping[str, np.ndarray] = {
        "full": np.ones(shape, dtype=bool),
        "right-padded": position < visible,
        "left-padded": position >= length - visible,
        "holed": (position + np.arange(batch)[:, None]) % 3 != 1,
    }
    return np.asarray(masks[kind])
