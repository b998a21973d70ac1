"""Batches: samples with masks of every kind, joined as a server joins them, with an empty row, and as one long row."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from engine.kit.inputs import token_rows
from engine.kit.inputs.cases import Case
from engine.kit.inputs.token_rows import Row, RowLimits, Side

if TYPE_CHECKING:
    import numpy as np

    from engine.kit.onnx.onnx_files import Input
    from engine.recipe.values import Profile

_ROWS = 8
"""The largest number of samples in a batch."""
_PADDED = ("pixel_values", "pixel_mask")
"""The inputs of a model that takes images of different sizes in one batch."""
_BATCHES = 2
"""The largest number of batches."""
_LONGEST = 512
"""The largest number of tokens of a long row; most encoder models have embeddings for 512 positions."""
_USUAL = 128
"""The number of tokens of a long row for a model that does not say how many tokens a row may have."""


def of_texts(
    cases: Sequence[Case],
    specs: Mapping[str, Input],
    *,
    pad: int,
    limits: RowLimits,
    side: Side = "right",
    prefix: str = "",
) -> Iterator[Case]:
    """Yield masked batches, batches of whole texts, and one batch with a row in which the mask hides all tokens.

    Texts are padded on one side, that of the model's tokenizer. The name of a yielded case begins with `prefix`.
    Nothing is yielded for a model without a mask; whole texts are in batches of two rows or more.
    """
    if "attention_mask" not in specs:
        return
    yield from masked(cases, specs, pad=pad, limits=limits, prefix=prefix)
    rows = _rows(cases)
    groups = list(_groups(len(rows), limits))
    joined = [
        token_rows.batch([rows[index] for index in group], pad=pad, side=side, length=limits.sequence[0])
        for group in groups
    ]
    for number, (group, inputs) in enumerate(zip(groups, joined, strict=True), 1):
        names = ", ".join(cases[index].name for index in group)
        yield Case(f"{prefix}batch {number}", names, "batched", token_rows.fit(inputs, specs), {})
    if groups:
        mask = joined[0]["attention_mask"].copy()
        mask[-1] = 0
        names = ", ".join(cases[index].name for index in groups[0][:-1])
        blank = token_rows.fit({**joined[0], "attention_mask": mask}, specs)
        yield Case(f"{prefix}a row without tokens", names, "blank-row", blank, {})


def masked(
    cases: Sequence[Case], specs: Mapping[str, Input], *, pad: int, limits: RowLimits, prefix: str = ""
) -> Iterator[Case]:
    """Yield cases that join rows of `cases` into batches, with every kind of mask; none for a model that takes no mask.

    The text of a yielded case names the cases that its rows come from. The name of a yielded case begins with `prefix`.
    """
    if "attention_mask" not in specs:
        return
    counts: dict[str, int] = {}
    for kind, chosen, inputs in token_rows.masked(_rows(cases), pad=pad, limits=limits):
        counts[kind] = counts.get(kind, 0) + 1
        names = ", ".join(dict.fromkeys(cases[index].name for index in chosen))
        yield Case(f"{prefix}{kind} {counts[kind]}", names, kind, token_rows.fit(inputs, specs), {})


def _rows(cases: Sequence[Case]) -> list[Row]:
    """Return the first row of each case, without positions, which `token_rows.fit` counts for each batch."""
    return [{name: tensor[:1] for name, tensor in case.inputs.items() if name != "position_ids"} for case in cases]


def long_row(cases: Sequence[Case], specs: Mapping[str, Input], *, types: int, limits: RowLimits) -> Iterator[Case]:
    """Yield one long row of the tokens of all texts, the second half of which has the last of the token types.

    The row is as long as the model takes, at most `_LONGEST` tokens. Texts are often short, and single texts have one
    token type only, so that no text shows a mistake at later positions or a lost input `token_type_ids`.
    """
    import numpy as np

    least, most = limits.sequence
    length = max(least, min(_LONGEST, most or _USUAL))
    if not cases or (types < 2 and any(case.inputs["input_ids"].shape[1] >= length for case in cases)):  # noqa: PLR2004
        return
    rows = [_own(case) for case in cases]
    ids = np.resize(np.concatenate(rows), length)
    ids[-1] = rows[-1][-1]  # the end token
    second = np.arange(length) >= length / 2
    row = {
        "input_ids": ids[None],
        "attention_mask": np.ones((1, length), np.int64),
        "token_type_ids": (second * (types - 1))[None].astype(np.int64),
    }
    inputs = token_rows.fit(token_rows.alone(row, pad=0, limits=limits), specs)
    yield Case("a long row", "all texts as one", "long", inputs, {})


def _own(case: Case) -> np.ndarray:
    """Return the token ids of a text, without padding."""
    import numpy as np

    ids, mask = case.inputs["input_ids"][0], case.inputs.get("attention_mask")
    return np.asarray(ids if mask is None else ids[mask[0].astype(bool)])


def of_tensors(cases: Sequence[Case], specs: Mapping[str, Input]) -> Iterator[Case]:
    """Yield batches of samples of equal shape, for a model with a dynamic first axis.

    Inputs without a dynamic first axis, such as a sampling rate, are equal for all samples of a batch. Images may have
    different sizes if the model takes a mask of their padding. Where no two samples can stand in one batch, the first
    sample stands in a batch twice.
    """
    batched = _batched(specs)
    padded = _PADDED if set(_PADDED) <= batched else ()
    same: dict[object, list[Case]] = {}
    for case in cases:
        if {case.inputs[name].shape[:1] for name in batched} == {(1,)}:
            same.setdefault(_shapes(case, batched, padded), []).append(case)
    several = [alike for alike in same.values() if len(alike) > 1] or list(same.values())[:1]
    groups = [[alike[index] for index in group] for alike in several for group in _groups(len(alike), RowLimits())]
    for number, chosen in enumerate(groups, 1):
        names = ", ".join(case.name for case in chosen)
        inputs = _joined(chosen, batched, padded)
        yield Case(f"batch {number}", names, "batched", inputs, {})


def alone(cases: Sequence[Case], specs: Mapping[str, Input], profiles: Sequence[Profile]) -> Iterator[Case]:
    """Yield the first row of each random batch as a batch of one row, where the profiles allow a batch of one row."""
    batched = _batched(specs)
    axes = {str(specs[name].shape[0]) for name in batched}
    least = max((int(profile[axis].min) for profile in profiles for axis in axes if axis in profile), default=1)
    if least > 1:
        return
    for case in cases:
        if len(sizes := {len(case.inputs[name]) for name in batched}) == 1 and sizes != {1}:
            row = {name: tensor[:1] if name in batched else tensor for name, tensor in case.inputs.items()}
            yield replace(case, name=f"{case.name}, first row", kind="alone", inputs=row)


def _batched(specs: Mapping[str, Input]) -> set[str]:
    """Return the names of the inputs that begin with a dynamic axis, which is usually the batch."""
    return {name for name, spec in specs.items() if spec.shape and isinstance(spec.shape[0], str)}


def _groups(count: int, limits: RowLimits) -> Iterator[list[int]]:
    """Yield the indices of the samples in each batch: at most `_BATCHES` batches, spread over all samples.

    A single sample stands in a batch twice.
    """
    least, most = limits.batch
    size = min(_ROWS, most or _ROWS)
    total = min(max(2, count), size * _BATCHES)
    chosen = [index * count // total for index in range(total)]
    for start in range(0, total, size):
        group = chosen[start : start + size]
        if len(group) >= max(2, least):
            yield group


def _shapes(case: Case, batched: Collection[str], padded: Collection[str]) -> object:
    """Return what the samples of a batch have in common: the shapes of their rows, and all their other inputs."""
    return tuple(
        (name, tensor.dtype.str, tensor.shape, b"" if name in batched else tensor.tobytes())
        for name, tensor in case.inputs.items()
        if name not in padded
    )


def _joined(cases: Sequence[Case], batched: Collection[str], padded: Collection[str]) -> dict[str, np.ndarray]:
    """Return the samples as one batch; images are padded at the bottom and on the right, as image processors do."""
    import numpy as np

    joined = {}
    for name, tensor in cases[0].inputs.items():
        rows = [case.inputs[name] for case in cases]
        if name in padded:
            most = np.max([row.shape for row in rows], axis=0)
            rows = [np.pad(row, [(0, end - own) for own, end in zip(row.shape, most, strict=True)]) for row in rows]
        joined[name] = np.concatenate(rows) if name in batched else tensor
    return joined
