"""In a batch: whether the built model answers a sample alone as it answers the same sample among others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.kit.accuracy.outputs import vectors
from engine.kit.inputs.cases import Case

if TYPE_CHECKING:
    import numpy as np

    from engine.kit.accuracy.outputs import Usual
    from engine.kit.checkpoints.sentences import Pooling

    Answers = Mapping[str, np.ndarray]

_SAME = 0.9999
"""The least cosine at which the original counts as answering alike alone and in a batch.

Some originals do not: a model without position ids for padding on the left, for example, gives a padded row other
positions. Where the original itself differs by more, the row says nothing about the built model.
"""


@dataclass(frozen=True)
class RowOfBatch:
    """A row of a batch: the case, and the cosine of one of its outputs with the same output for the row alone."""

    case: Case
    output: str
    cosine: float


def rows(
    cases: Sequence[Case], answers: Sequence[Answers], *, pooling: Pooling | None, usual: Mapping[str, Usual]
) -> list[RowOfBatch]:
    """Return the rows of batches that also exist as a case with this row alone, with the cosine of both answers.

    Both answers are the built model's. Outputs near zero, faint vectors and outputs of single numbers are left out.
    """
    alone = {
        key: (case, answer) for case, answer in zip(cases, answers, strict=True) if (key := _only(case)) is not None
    }
    measured: list[RowOfBatch] = []
    for case, answer in zip(cases, answers, strict=True):
        if _only(case) is not None:
            continue
        for place, key in enumerate(_keys(case)):
            if key in alone:
                measured += _row(case, answer, place, alone[key], pooling=pooling, usual=usual)
    return measured


def _row(
    case: Case,
    answer: Answers,
    place: int,
    alone: tuple[Case, Answers],
    *,
    pooling: Pooling | None,
    usual: Mapping[str, Usual],
) -> Iterator[RowOfBatch]:
    """Yield the cosine of each output of row `place` in its batch with the output of the row alone."""
    single, single_answer = alone
    for name in case.outputs:
        if usual[name].is_near_zero:
            continue
        original, built = (
            _of_pair(
                _vector(name, case, batch, place, pooling),
                _vector(name, single, one, 0, pooling),
                faint=usual[name].faint,
            )
            for batch, one in ((case.outputs, single.outputs), (answer, single_answer))
        )
        if original is not None and original >= _SAME and built is not None:
            yield RowOfBatch(case, name, built)


def _of_pair(first: np.ndarray | None, second: np.ndarray | None, *, faint: float) -> float | None:
    import numpy as np

    if first is None or second is None or first.shape != second.shape or first.size < 2:  # noqa: PLR2004 - a direction
        return None
    lengths = float(np.linalg.norm(first)), float(np.linalg.norm(second))
    if not np.isfinite(lengths).all() or min(lengths) < max(faint, 1e-12):
        return None
    return float(first @ second) / (lengths[0] * lengths[1])


def _vector(name: str, case: Case, outputs: Answers, place: int, pooling: Pooling | None) -> np.ndarray | None:
    """Return the vector of one row of an output; None where the output has no such row."""
    output = outputs[name]
    if not output.ndim or len(output) != len(next(iter(case.inputs.values()))):
        return None
    inputs = {key: tensor[place : place + 1] for key, tensor in case.inputs.items()}
    every = vectors(name, output[place : place + 1], inputs, pooling=pooling)
    return every[0] if len(every) == 1 else None


def _only(case: Case) -> object | None:
    """Return the key of the only row of a case, or of a row that a fixed batch repeats; None for other cases."""
    keys = set(_keys(case))
    return keys.pop() if len(keys) == 1 and case.kind in {"sample", "random", "tensors"} else None


def _keys(case: Case) -> list[object]:
    """Return for each row of a case what a model can see of the row; [] where the inputs have no common first axis."""
    sizes = {tensor.shape[0] if tensor.ndim else 0 for tensor in case.inputs.values()}
    if len(sizes) != 1 or 0 in sizes:
        return []
    return [_key(case, place) for place in range(sizes.pop())]


def _key(case: Case, place: int) -> object:
    mask = case.inputs.get("attention_mask")
    parts: list[tuple[str, bytes]] = []
    for name, tensor in sorted(case.inputs.items()):
        if name in {"attention_mask", "position_ids"}:
            continue
        if mask is not None and mask.shape == tensor.shape[: mask.ndim]:
            parts.append((name, tensor[place][mask[place].astype(bool)].tobytes()))
        else:
            parts.append((name, tensor[place].tobytes()))
    return tuple(parts)
