"""Forty seeded attention masks of every kind and of several shapes, with the ids of random tokens."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from engine.kit.inputs import synthetic

SHAPES = ((1, 5), (3, 16), (2, 33), (4, 64), (5, 8))
"""The shapes [batch, sequence] of the masks."""
KINDS = (*synthetic.MASKS, "random", "one visible", "a hidden row", "all hidden")
"""The kinds of mask: those with which a fused graph is compared, and those with fewer visible positions."""


class Masked(NamedTuple):
    """A mask of a kind, and the inputs of a model: tensors [batch, sequence] of int64."""

    kind: str
    inputs: dict[str, np.ndarray]

    @property
    def hides_rows(self) -> bool:
        """Whether a row of the mask hides all of its positions."""
        return not self.inputs["attention_mask"].any(axis=1).all()


def forty(words: int) -> list[Masked]:
    """Return a mask of each kind for each shape, with ids from 5 to `words` - 1."""
    generator = np.random.default_rng(0)
    return [
        Masked(
            kind,
            {
                "input_ids": generator.integers(5, words, shape),
                "attention_mask": _mask(kind, shape, generator).astype(np.int64),
                "token_type_ids": np.zeros(shape, np.int64),
            },
        )
        for shape in SHAPES
        for kind in KINDS
    ]


def _mask(kind: str, shape: tuple[int, int], generator: np.random.Generator) -> np.ndarray:
    if kind in synthetic.MASKS:
        return synthetic.mask(kind, shape)
    if kind == "all hidden":
        return np.zeros(shape, bool)
    visible = generator.random(shape) < 0.5
    visible[:, generator.integers(0, shape[1])] = True
    if kind == "one visible":
        return np.arange(shape[1]) == generator.integers(0, shape[1], (shape[0], 1))
    if kind == "a hidden row":
        visible[generator.integers(0, shape[0])] = False
    return visible
