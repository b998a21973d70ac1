"""Sample rows: a recipe's samples as rows of tokens, and the batches that a model takes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import StepError
from engine.kit.bench import mixed_lengths
from engine.kit.bench.mixed_lengths import SampleOrder
from engine.kit.inputs import samples, token_rows
from engine.kit.inputs import tokenizer as tokenizers
from engine.kit.inputs.token_rows import Row, RowLimits
from engine.runtimes import axes
from engine.text import lists

if TYPE_CHECKING:
    import numpy as np

    from engine.kit.inputs.tokenizer import Tokenizer
    from engine.kit.onnx.onnx_files import Input
    from engine.recipe.values import Profile

MOST_TEXTS = 512
"""Of a larger file of samples, so many texts are measured; they are spread evenly over the file."""


@dataclass(frozen=True)
class SampleRows:
    """The samples as rows of tokens, and how rows become the batches that a model takes."""

    rows: Sequence[Row]
    of_texts: int
    tokenizer: Tokenizer
    specs: Mapping[str, Input]
    allowed: Sequence[RowLimits]
    """The limits of the model's profiles; empty for a model that takes a batch of any size."""

    @cached_property
    def lengths(self) -> list[int]:
        """The number of tokens of each row."""
        return [row["input_ids"].shape[1] for row in self.rows]

    def batch(self, indices: Sequence[int]) -> dict[str, np.ndarray]:
        """Return rows as one batch, in which the last row is repeated where profiles need more rows.

        Raises StepError where no profile takes the batch.
        """
        longest = max(self.lengths[index] for index in indices)
        shape = mixed_lengths.padded(len(indices), longest, self.allowed)
        if shape is None:
            raise StepError(
                f"no profile takes a batch of {lists.counted(len(indices), 'sample')} with up to {longest} tokens",
                [f"profile {number}: {_in_words(limits)}" for number, limits in enumerate(self.allowed)],
                "widen a profile, or measure another batch size",
            )
        rows = [self.rows[index] for index in indices]
        rows += rows[-1:] * (shape[0] - len(rows))
        tensors = token_rows.batch(rows, pad=self.tokenizer.pad, side=self.tokenizer.side, length=shape[1])
        return token_rows.fit(tensors, self.specs)

    def takes(self, size: int) -> bool:
        """Whether the model takes batches of `size` rows of every length."""
        return mixed_lengths.padded(size, max(self.lengths), self.allowed) is not None

    def batches(self, size: int, order: SampleOrder) -> list[dict[str, np.ndarray]]:
        """Return all samples as batches of `size` rows in an order."""
        return [self.batch(indices) for indices in mixed_lengths.batches(self.lengths, size, order)]


def read(
    file: Path,
    checkpoint: Path,
    specs: Mapping[str, Input],
    *,
    longest: int | None = None,
    profiles: Sequence[Profile] = (),
) -> SampleRows:
    """Return the samples of a `.jsonl` file as rows, cut to `longest` tokens and to the model's own limit.

    Raises StepError where the file holds no texts, or the model takes no tokens or has no tokenizer.
    """
    samples.refuse_no_tokens(specs)
    own = RowLimits.of(specs, longest)
    tokenizer = tokenizers.load(checkpoint, longest=own.sequence[1])
    if tokenizer is None:
        raise samples.no_tokenizer()
    texts = samples.texts(file)
    rows = []
    for index in mixed_lengths.evenly(len(texts), MOST_TEXTS):
        row = tokenizer.row(texts[index].text, texts[index].pair)
        if row["input_ids"].size == 0:
            raise StepError(f"the tokenizer makes no token of {texts[index].name}", hint="leave it out of the samples")
        rows.append(row)
    allowed = [_limits(profile, specs) for profile in profiles]
    if not allowed and own.batch[1] is not None:
        allowed = [own]
    return SampleRows(rows, len(texts), tokenizer, specs, allowed)


def _limits(profile: Profile, specs: Mapping[str, Input]) -> RowLimits:
    named = axes.by_name(profile, axes.shapes(specs))

    def limits(axis: int | str) -> tuple[int, int | None]:
        if isinstance(axis, int):
            return axis, axis
        return (named[axis].min, named[axis].max) if axis in named else (1, None)

    batch, tokens = specs["input_ids"].shape
    return RowLimits(limits(batch), limits(tokens))


def _in_words(limits: RowLimits) -> str:
    def between(ends: tuple[int, int | None]) -> str:
        return f"{ends[0]} to {ends[1] or 'any'}"

    return f"batch {between(limits.batch)}, tokens {between(limits.sequence)}"
