"""Batches: whole samples joined into batches, as a server joins requests, and a batch with a row that has no token."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from engine.kit.inputs import token_rows
from engine.kit.inputs.cases import Case
from engine.kit.inputs.token_rows import RowLimits, Side

if TYPE_CHECKING:
    import numpy as np

    from engine.kit.onnx.onnx_files import Input
    from engine.recipe.schema import Profile

_ROWS = 8
"""The largest number of samples in a batch."""
_BATCHES = 2
"""The largest number of batches."""


def of_texts(
    cases: Sequence[Case],
    specs: Mapping[str, Input],
    *,
    pad: int,
    limits: RowLimits,
    side: Side = "right",
    prefix: str = "",
) -> Iterator[Case]:
    """Yield batches of whole texts, and one batch with a row in which the mask hides all tokens.

    Texts are padded on one side, that of the model's tokenizer. The name of a yielded case begins with `prefix`.
    Nothing is yielded for a model without a mask, or with a batch size of 1.
    """
    if "attention_mask" not in specs:
        return
    # Positions are left out here, because `token_rows.fit` counts them for each batch.
    rows = [{name: tensor[:1] for name, tensor in case.inputs.items() if name != "position_ids"} for case in cases]
    groups = list(_groups(len(rows), limits))
    for number, group in enumerate(groups, 1):
        inputs = token_rows.batch([rows[index] for index in group], pad=pad, side=side, length=limits.sequence[0])
        names = ", ".join(cases[index].name for index in group)
        yield Case(f"{prefix}batch {number}", names, "batched", token_rows.fit(inputs, specs), {})
    for group in groups[:1]:
        inputs = token_rows.batch([rows[index] for index in group], pad=pad, side=side, length=limits.sequence[0])
        mask = inputs["attention_mask"].copy()
        mask[-1] = 0
        names = ", ".join(cases[index].name for index in group[:-1])
        blank = token_rows.fit({**inputs, "attention_mask": mask}, specs)
        yield Case(f"{prefix}a row without tokens", names, "blank-row", blank, {})


def of_tensors(cases: Sequence[Case], specs: Mapping[str, Input]) -> Iterator[Case]:
    """Yield batches of samples of equal shape, for a model whose inputs all begin with the same dynamic axis."""
    if not _are_batches(specs):
        return
    same: dict[object, list[Case]] = {}
    for case in cases:
        if {tensor.shape[:1] for tensor in case.inputs.values()} == {(1,)}:
            same.setdefault(_shapes(case), []).append(case)
    number = 0
    for alike in same.values():
        for group in _groups(len(alike), RowLimits()):
            number += 1
            chosen = [alike[index] for index in group]
            names = ", ".join(case.name for case in chosen)
            yield replace(
                chosen[0], name=f"batch {number}", text=names, kind="batched", inputs=_joined(chosen), label=None
            )


def alone(cases: Sequence[Case], specs: Mapping[str, Input], profiles: Sequence[Profile]) -> Iterator[Case]:
    """Yield the first row of each random batch as a batch of one row, where the profiles allow a batch of one row."""
    axes = [str(axis) for axis in next(iter(specs.values())).shape[:1]]
    least = max((int(profile[axis].min) for profile in profiles for axis in axes if axis in profile), default=1)
    if least > 1 or not _are_batches(specs):
        return
    for case in cases:
        if len(sizes := {len(tensor) for tensor in case.inputs.values()}) == 1 and sizes != {1}:
            row = {name: tensor[:1] for name, tensor in case.inputs.items()}
            yield replace(case, name=f"{case.name}, first row", kind="alone", inputs=row)


def _are_batches(specs: Mapping[str, Input]) -> bool:
    """Whether all inputs of a model begin with the same dynamic axis."""
    axes = {spec.shape[0] if spec.shape else None for spec in specs.values()}
    return len(axes) == 1 and isinstance(axes.pop(), str)


def _groups(count: int, limits: RowLimits) -> Iterator[list[int]]:
    """Yield the indices of the samples in each batch: at most `_BATCHES` batches, spread over all samples."""
    least, most = limits.batch
    size = min(_ROWS, most or _ROWS)
    total = min(count, size * _BATCHES)
    chosen = [index * count // total for index in range(total)]
    for start in range(0, total, size):
        group = chosen[start : start + size]
        if len(group) >= max(2, least):
            yield group


def _shapes(case: Case) -> object:
    return tuple((name, tensor.dtype.str, tensor.shape) for name, tensor in case.inputs.items())


def _joined(cases: Sequence[Case]) -> dict[str, np.ndarray]:
    import numpy as np

    return {name: np.concatenate([case.inputs[name] for case in cases]) for name in cases[0].inputs}
