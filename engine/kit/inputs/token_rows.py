"""Token rows: texts as tensors, padded into batches with different masks, within the limits of a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import numpy as np

    from engine.kit.onnx.onnx_files import Input

NAMES = ("input_ids", "attention_mask", "token_type_ids", "position_ids")
"""The names of the inputs that a tokenizer can fill, each [batch, sequence]."""

Row = Mapping[str, "np.ndarray"]
"""One text or pair as a batch with one row: `input_ids`, `attention_mask`, `token_type_ids`, int64 [1, tokens]."""

Masked = Literal["right-padded", "left-padded", "holed"]
"""The place of the tokens that the mask of a batch hides: at the end, at the beginning, or in the middle of a row."""

Side = Literal["left", "right"]
"""The side on which the rows of a batch are padded."""

_GROUP = 4
"""The number of rows in a masked batch; a model with a shorter batch axis gets batches with fewer rows."""
_GROUPS = 2
"""The number of masked batches for each place of the hidden tokens; fewer where the samples are too few."""


@dataclass(frozen=True)
class Vocabulary:
    """The limits of the values in a row of tokens: token ids are below `tokens`, and token types are below `types`.

    `pad` is the padding token's id.
    """

    tokens: int
    types: int = 1
    pad: int = 0


@dataclass(frozen=True)
class Padding:
    """How a tokenizer pads texts to one length: with the token `pad`, on one side."""

    pad: int
    side: Side


@dataclass(frozen=True)
class RowLimits:
    """The least and the greatest extent of a text model's batch and sequence axes; None means no limit."""

    batch: tuple[int, int | None] = (1, None)
    sequence: tuple[int, int | None] = (1, None)

    @classmethod
    def of(cls, specs: Mapping[str, Input], longest: int | None = None) -> RowLimits:
        """Return the limits of a text model's axes by its inputs' shapes; `longest` limits a dynamic sequence axis."""
        sizes = specs["input_ids"].shape
        batch, sequence = ((size, size) if isinstance(size, int) else None for size in sizes)
        return cls(batch=batch or (1, None), sequence=sequence or (1, longest))

    def __str__(self) -> str:
        batch, tokens = (f"{least} to {most or 'any'}" for least, most in (self.batch, self.sequence))
        return f"batch {batch}, tokens {tokens}"


def are_tokens(specs: Mapping[str, Input]) -> bool:
    """Whether a tokenizer can fill all inputs of a model."""
    flat = all(len(spec.shape) == 2 for spec in specs.values())  # noqa: PLR2004 - batch and sequence
    return "input_ids" in specs and set(specs) <= set(NAMES) and flat


def are_right_padded(inputs: Mapping[str, np.ndarray]) -> bool:
    """Whether every mask among the inputs shows the first tokens of each row, at least one, and hides all others."""
    import numpy as np

    masks = [tensor != 0 for name, tensor in inputs.items() if "mask" in name.lower() and tensor.dtype.kind in "biu"]
    return all(mask[..., :1].all() and not (np.diff(mask.astype(np.int8), axis=-1) > 0).any() for mask in masks)


def batch(rows: Sequence[Row], *, pad: int, side: Side = "right", length: int = 0) -> dict[str, np.ndarray]:
    """Return the rows as one batch, padded on one side to the longest row, or to `length` where that is longer."""
    import numpy as np

    length = max(length, *(row["input_ids"].shape[1] for row in rows))
    tensors: dict[str, np.ndarray] = {}
    for name in rows[0]:
        padded = []
        for row in rows:
            missing = length - row[name].shape[1]
            width = (0, missing) if side == "right" else (missing, 0)
            padded.append(np.pad(row[name], ((0, 0), width), constant_values=pad if name == "input_ids" else 0))
        tensors[name] = np.concatenate(padded)
    return tensors


def punch_hole(inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the batch with an attention mask of 0 on the middle third of each row's visible tokens."""
    mask = inputs["attention_mask"].copy()
    for row in mask:
        (own,) = row.nonzero()
        third = len(own) // 3
        row[own[third : len(own) - third] if third else own[:0]] = 0
    return {**inputs, "attention_mask": mask}


def alone(row: Row, *, pad: int, limits: RowLimits) -> dict[str, np.ndarray]:
    """Return one row as the smallest batch that the model takes.

    The row is repeated up to the least batch size that the model takes, and padded up to the least sequence length that
    the model takes.
    """
    return batch([row] * limits.batch[0], pad=pad, length=limits.sequence[0])


def masked(
    rows: Sequence[Row], *, pad: int, limits: RowLimits
) -> Iterator[tuple[Masked, list[int], dict[str, np.ndarray]]]:
    """Yield for each batch the kind of its mask, the indices in `rows` of the batch's rows, and the batch itself.

    Every other row is cut to half its tokens, so that rows of equal length need padding, too.
    """
    size = max(limits.batch[0], min(_GROUP, limits.batch[1] or _GROUP))
    count = min(len(rows), size * _GROUPS)
    chosen = [index * len(rows) // count for index in range(count)]
    for start in range(0, count, size):
        group = [chosen[(start + offset) % count] for offset in range(min(size, max(count, limits.batch[0])))]
        own = [_trim(rows[index]) for index in group]
        length = max(limits.sequence[0], *(row["input_ids"].shape[1] for row in own))
        mixed = [_halve(row) if place % 2 == 0 else row for place, row in enumerate(own)]
        right = batch(mixed, pad=pad, length=length)
        yield "right-padded", group, right
        yield "left-padded", group, batch(mixed, pad=pad, length=length, side="left")
        yield "holed", group, punch_hole(right)


def fit(inputs: Mapping[str, np.ndarray], specs: Mapping[str, Input]) -> dict[str, np.ndarray]:
    """Return the tensors that a model takes, in its inputs' types; `position_ids` counts a row's positions from 0."""
    import numpy as np

    shape = inputs["input_ids"].shape
    positions = np.broadcast_to(np.arange(shape[1]), shape)
    tensors = {"position_ids": positions, **inputs}
    return {name: np.ascontiguousarray(tensors[name], dtype=spec.dtype) for name, spec in specs.items()}


def _trim(row: Row) -> Row:
    """Return the row of tokens without the padding (attention mask 0) at its beginning and its end."""
    (own,) = row["attention_mask"][0].nonzero()
    return {name: tensor[:, own[0] : own[-1] + 1] for name, tensor in row.items()} if len(own) else row


def _halve(row: Row) -> Row:
    """Return the first half of a row, at least one token."""
    half = max(1, row["input_ids"].shape[1] // 2)
    return {name: tensor[:, :half] for name, tensor in row.items()}
