"""In a batch: whether the built model answers a row alone as it answers the same row among others."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from engine.kit.accuracy.outputs import NEAR_ZERO, vectors
from engine.kit.inputs import token_rows
from engine.kit.inputs.cases import Case
from engine.kit.inputs.token_rows import Padding
from engine.text import lists

if TYPE_CHECKING:
    import numpy as np

    from engine.kit.accuracy.outputs import Usual
    from engine.kit.checkpoints.sentences import Pooling

    Tensors = Mapping[str, np.ndarray]
    Answer = Callable[[Tensors], Mapping[str, np.ndarray]]
    Takes = Callable[[Tensors], bool]

_ROWS = 6
"""The largest number of different rows in a batch."""
_LARGER = 10
"""The factor by which the numbers of a larger row exceed the numbers of a usual row."""
_POSITIONS = "position_ids"


class RowOfBatch(NamedTuple):
    """A row among others: the case that it comes from, an output, and the likeness to the same output alone.

    The likeness is the cosine, less half the squared difference of the lengths as a share of the lengths: it is 1 where
    both outputs are equal, and less than the cosine where only the direction is equal. The length of a faint output
    counts as `Usual.faint`, because a small error can turn a short vector far.
    """

    case: Case
    output: str
    likeness: float


@dataclass(frozen=True)
class InBatch:
    """The likeness of rows among others of equal shape, and of texts among shorter and longer ones that are padded.

    `padded` is empty for a model whose package pads no texts. `reason` says why no row can stand among others; None
    where rows can.
    """

    equal: Sequence[RowOfBatch] = ()
    padded: Sequence[RowOfBatch] = ()
    reason: str | None = None


def measure(
    answer: Answer,
    cases: Sequence[Case],
    *,
    padding: Padding | None,
    pooling: Pooling | None,
    usual: Mapping[str, Usual],
    takes: Takes,
) -> InBatch | None:
    """Return how the built model answers rows of the cases alone, and among others that are longer, shorter or larger.

    `padding` is None where the package pads no texts. Returns None where the model takes one size of a batch only.
    """
    batched, is_sure = _batched(cases)
    rows = _rows(cases, batched)
    if not rows:
        return None
    try:
        model = _Model(answer, takes, pooling, usual)
        largest = max(len(case.inputs[name]) for case in cases for name in batched)
        equal = _among_equal(model, rows, batched, largest)
        longer = [] if padding is None or equal is None else _among_longer(model, rows, padding)
    except _FirstAxisError as error:
        return InBatch(reason=str(error))
    except Exception as error:  # noqa: BLE001 - each runtime has exceptions of its own
        print(f"the model does not take rows together: {error}"[:300])
        return InBatch(reason="the model fails on several rows together") if is_sure else None
    return None if equal is None else InBatch(equal, longer)


class _FirstAxisError(Exception):
    """An output does not have the batch as its first axis; the message says which output."""


@dataclass(frozen=True)
class _Row:
    case: Case
    inputs: Tensors


@dataclass(frozen=True)
class _Model:
    answer: Answer
    takes: Takes
    pooling: Pooling | None
    usual: Mapping[str, Usual]

    def together(self, inputs: Tensors, count: int) -> Mapping[str, np.ndarray]:
        """Return the outputs for `count` rows. Raises _FirstAxisError where an output has not one row for each."""
        outputs = {name: output for name, output in self.answer(inputs).items() if name in self.usual}
        for name, output in outputs.items():
            if output.shape[:1] != (count,):
                raise _FirstAxisError(f"{name} has the shape {list(output.shape)} for {lists.counted(count, 'row')}")
        return outputs


def _batched(cases: Sequence[Case]) -> tuple[set[str], bool]:
    """Return the names of the inputs that have a row for each row of a batch, and whether the cases prove it.

    The first extent of such inputs differs between cases of several batch sizes. Where all cases have one batch size,
    all inputs are tried.
    """
    extents = {name: tuple(case.inputs[name].shape[:1] for case in cases) for name in cases[0].inputs}
    varying = {name for name, each in extents.items() if len(set(each)) > 1}
    return varying or {name for name, each in extents.items() if each[0]}, bool(varying)


def _rows(cases: Sequence[Case], batched: set[str]) -> list[_Row]:
    """Return the different rows of samples and of random inputs, each as a batch of one row: at most `_ROWS`."""
    rows: dict[object, _Row] = {}
    for case in cases:
        if case.kind not in {"sample", "random", "tensors"}:
            continue
        count = min(len(tensor) for name, tensor in case.inputs.items() if name in batched)
        for place in range(count):
            inputs = {
                name: tensor[place : place + 1] if name in batched else tensor for name, tensor in case.inputs.items()
            }
            key = tuple((name, tensor.shape, tensor.tobytes()) for name, tensor in sorted(inputs.items()))
            rows.setdefault(key, _Row(case, inputs))
    every = list(rows.values())
    count = min(len(every), _ROWS)
    return [every[number * len(every) // count] for number in range(count)]


def _among_equal(model: _Model, rows: Sequence[_Row], batched: set[str], largest: int) -> list[RowOfBatch] | None:
    """Return the likeness of rows among others of their shape; None where the model takes one size of a batch only.

    Among the others are a row backwards, a row of larger numbers and the row itself again. All rows get the shape of
    the middle one. The batch has `largest` rows, the largest batch of the cases, where the model takes so many.
    """
    import numpy as np

    base = sorted(rows, key=lambda row: sum(tensor.size for tensor in row.inputs.values()))[len(rows) // 2]
    fitted = [_Row(row.case, _fitted(row.inputs, base.inputs, batched)) for row in rows]
    first = fitted[0]
    larger = {name: _larger(tensor) if name in batched else tensor for name, tensor in fitted[-1].inputs.items()}
    backwards = {
        name: each[:, ::-1] if name in batched and each.ndim > 1 and name != _POSITIONS else each
        for name, each in first.inputs.items()
    }
    every = [first.inputs, larger, backwards, *(row.inputs for row in fitted[1:])]
    compared = {0: first, **dict(enumerate(fitted[1:], 3))}
    every += list(itertools.islice(itertools.cycle(every), max(1, largest - len(every))))
    while len(every) > 1:
        joined = {
            name: np.concatenate([each[name] for each in every]) if name in batched else first.inputs[name]
            for name in first.inputs
        }
        if model.takes(joined) and model.takes(first.inputs):
            break
        every.pop()
    else:
        return None
    together = model.together(joined, len(every))
    return [
        each
        for place, row in compared.items()
        if place < len(every)
        for each in _likeness(model, row, row.inputs, row.inputs, _of_row(together, place), is_padded=False)
    ]


def _among_longer(model: _Model, rows: Sequence[_Row], padding: Padding) -> list[RowOfBatch]:
    """Return the likeness of texts among longer ones, to whose length they are padded; [] for texts of one length."""
    import numpy as np

    base = rows[0].inputs
    others = {name for name in base if name not in token_rows.NAMES}
    fitted = [_Row(row.case, {**row.inputs, **_only(_fitted(row.inputs, base, others), others)}) for row in rows]
    chosen = sorted(fitted, key=_length)
    while len(chosen) > 1:
        # A mask, also for a model that takes none, tells the real positions of outputs.
        own = [{"attention_mask": np.ones_like(row.inputs["input_ids"]), **row.inputs} for row in chosen]
        padded = {
            **{name: np.concatenate([each[name] for each in own]) for name in others},
            **_padded([_only(each, each.keys() - others) for each in own], padding),
        }
        if model.takes(_only(padded, base.keys())):
            break
        chosen.pop()
    if len(chosen) < 2 or _length(chosen[0]) == _length(chosen[-1]):  # noqa: PLR2004 - a row and another
        return []
    together = model.together(_only(padded, base.keys()), len(chosen))
    return [
        each
        for place, row in enumerate(chosen)
        for each in _likeness(model, row, own[place], _of_row(padded, place), _of_row(together, place), is_padded=True)
    ]


def _length(row: _Row) -> int:
    return int(row.inputs["input_ids"].shape[1])


def _only(tensors: Tensors, names: Collection[str]) -> dict[str, np.ndarray]:
    return {name: tensor for name, tensor in tensors.items() if name in names}


def _padded(rows: Sequence[Tensors], padding: Padding) -> dict[str, np.ndarray]:
    """Return texts as a batch, padded as the tokenizer of a package pads them: positions count from 0."""
    import numpy as np

    inputs = token_rows.batch(rows, pad=padding.pad, side=padding.side)
    if _POSITIONS in inputs:
        positions = np.arange(inputs[_POSITIONS].shape[1], dtype=inputs[_POSITIONS].dtype)
        inputs[_POSITIONS] = np.broadcast_to(positions, inputs[_POSITIONS].shape).copy()
    return inputs


def _fitted(inputs: Tensors, base: Tensors, names: set[str]) -> dict[str, np.ndarray]:
    """Return the inputs of a row in the shapes of another row: cut, or with their own numbers repeated."""
    fitted = {name: base[name] for name in inputs if name not in names}
    for name in names & set(inputs):
        tensor = inputs[name]
        for axis in range(1, tensor.ndim):
            tensor = tensor.take([index % tensor.shape[axis] for index in range(base[name].shape[axis])], axis=axis)
        fitted[name] = base[name] if name == _POSITIONS else tensor
    return {name: fitted[name] for name in inputs}


def _larger(tensor: np.ndarray) -> np.ndarray:
    """Return larger numbers than those of a row; whole numbers stay, because they may be the places of a table."""
    return (tensor * _LARGER).astype(tensor.dtype) if tensor.dtype.kind == "f" else tensor


def _of_row(outputs: Tensors, place: int) -> dict[str, np.ndarray]:
    return {name: output[place : place + 1] for name, output in outputs.items()}


def _likeness(
    model: _Model, row: _Row, own: Tensors, inputs: Tensors, among: Tensors, *, is_padded: bool
) -> Iterator[RowOfBatch]:
    """Yield for each output the likeness of a row alone and among others.

    `own` are the inputs of the row alone, and `inputs` its inputs among others; both with a mask for texts. An output
    of a padded row has another shape where it grows with the text in two axes, and is left out then.
    """
    import numpy as np

    for name, first in model.together(row.inputs, 1).items():
        if first.dtype.kind != "f":
            same = first.shape == among[name].shape and np.mean(first == among[name])
            yield RowOfBatch(row.case, name, float(same))
            continue
        if not is_padded and first.shape != among[name].shape:
            yield RowOfBatch(row.case, name, -1.0)
            continue
        one, other = (
            vectors(name, output, each, pooling=model.pooling) for output, each in ((first, own), (among[name], inputs))
        )
        if len(one) == len(other) == 1 and one[0].shape == other[0].shape and one[0].size:
            yield RowOfBatch(row.case, name, _alike(one[0], other[0], faint=model.usual[name].faint))


def _alike(alone: np.ndarray, among: np.ndarray, *, faint: float) -> float:
    import numpy as np

    finite = np.isfinite(alone)
    if not np.array_equal(alone[~finite], among[~finite], equal_nan=True) or not np.isfinite(among[finite]).all():
        return -1.0
    one, other = alone[finite], among[finite]
    least = max(faint, NEAR_ZERO * len(one) ** 0.5, 1e-12)
    size = max(float(np.linalg.norm(one) * np.linalg.norm(other)), least**2)
    return max(-1.0, float(1 - ((one - other) ** 2).sum() / (2 * size)))
