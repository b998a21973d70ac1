"""Rows of tokens: made up ones, and padded together into batches whose masks differ in kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import numpy as np

    from engine.kit.onnx.onnx_files import Input

NAMES = ("input_ids", "attention_mask", "token_type_ids", "position_ids")
"""What text models call the tensors that a tokenizer fills, each [batch, sequence]."""

Row = Mapping[str, "np.ndarray"]
"""One text as a batch of one: `input_ids`, `attention_mask` and `token_type_ids`, each int64 [1, tokens]."""

Masked = Literal["right-padded", "left-padded", "holed"]
"""Which tokens of a batch a model must not look at: those behind, those before, those in the middle."""

_GROUP = 4
_GROUPS = 2


@dataclass(frozen=True)
class Vocabulary:
    """Which numbers may stand in a row: ids below `tokens`, types below `types`, and the id that fills up."""

    tokens: int
    types: int = 1
    pad: int = 0


@dataclass(frozen=True)
class RowLimits:
    """The extents, from and to, that a model takes; None is no limit. A fixed axis has the same at both ends."""

    batch: tuple[int, int | None] = (1, None)
    sequence: tuple[int, int | None] = (1, None)

    @classmethod
    def of(cls, wanted: Mapping[str, Input], longest: int | None = None) -> RowLimits:
        """Return what the shapes of a text model's inputs say; `longest` where the sequence is free."""
        sizes = wanted["input_ids"].shape
        batch, sequence = ((size, size) if isinstance(size, int) else None for size in sizes)
        return cls(batch=batch or (1, None), sequence=sequence or (1, longest))


def are_tokens(wanted: Mapping[str, Input]) -> bool:
    """Whether a tokenizer fills all of a model's inputs."""
    flat = all(len(value.shape) == 2 for value in wanted.values())  # noqa: PLR2004 - batch and sequence
    return "input_ids" in wanted and set(wanted) <= set(NAMES) and flat


def batch(
    rows: Sequence[Row], *, pad: int, side: Literal["left", "right"] = "right", length: int = 0
) -> dict[str, np.ndarray]:
    """Return the rows as one batch, filled up on one side to the longest of them or to `length`."""
    import numpy as np

    length = max(length, *(row["input_ids"].shape[1] for row in rows))
    together: dict[str, np.ndarray] = {}
    for name in rows[0]:
        padded = []
        for row in rows:
            missing = length - row[name].shape[1]
            width = (0, missing) if side == "right" else (missing, 0)
            padded.append(np.pad(row[name], ((0, 0), width), constant_values=pad if name == "input_ids" else 0))
        together[name] = np.concatenate(padded)
    return together


def punch_hole(inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the batch with the middle third of each row's own tokens masked out; the ends stay visible."""
    mask = inputs["attention_mask"].copy()
    for row in mask:
        (own,) = row.nonzero()
        third = len(own) // 3
        row[own[third : len(own) - third] if third else own[:0]] = 0
    return {**inputs, "attention_mask": mask}


def alone(row: Row, *, pad: int, limits: RowLimits) -> dict[str, np.ndarray]:
    """Return one row as the smallest batch that the model takes: repeated and filled up where its axes are fixed."""
    return batch([row] * limits.batch[0], pad=pad, length=limits.sequence[0])


def masked(
    rows: Sequence[Row], *, pad: int, limits: RowLimits
) -> Iterator[tuple[Masked, list[int], dict[str, np.ndarray]]]:
    """Yield batches with masks of every kind, each with the numbers of the rows that are in it.

    Every other row is cut to half its tokens, so that there is something to mask in texts of one length, too.
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


def fit(inputs: Mapping[str, np.ndarray], wanted: Mapping[str, Input]) -> dict[str, np.ndarray]:
    """Return the tensors that a model takes, in its integer widths; positions are counted where it asks for them."""
    import numpy as np

    shape = inputs["input_ids"].shape
    positions = np.broadcast_to(np.arange(shape[1]), shape)
    every = {"position_ids": positions, **inputs}
    return {name: np.ascontiguousarray(every[name], dtype=value.dtype) for name, value in wanted.items()}


def _trim(row: Row) -> Row:
    """Return the row from its first visible token to its last."""
    (own,) = row["attention_mask"][0].nonzero()
    return {name: tensor[:, own[0] : own[-1] + 1] for name, tensor in row.items()} if len(own) else row


def _halve(row: Row) -> Row:
    half = max(1, row["input_ids"].shape[1] // 2)
    return {name: tensor[:, :half] for name, tensor in row.items()}
