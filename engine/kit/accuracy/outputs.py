"""Outputs of models: drops padding, splits outputs into vectors to compare, and finds their usual magnitude."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.kit.bench.stats import median
from engine.text import lists

if TYPE_CHECKING:
    import numpy as np

    from engine.kit.checkpoints.sentences import Pooling
    from engine.kit.inputs.cases import Case

SPANS = frozenset({"start_logits", "end_logits"})
"""The names of the outputs that have one logit for each position of a row, [batch, sequence]."""
LOGITS = SPANS | {"logits"}

_LARGE_LOGIT = 1.0
"""The least number by which an error of logits is divided to become relative.

A divisor of 1 also suits smaller logits, because softmax depends on differences of logits.
"""
_FAINT_LOGITS = 0.1
"""A vector of logits shorter than this number counts as faint, because all classes are then about equally likely."""
_FAINT = 0.25
"""A vector is called faint where it is shorter than this share of the median length of the output's vectors.

A small error can turn the direction of a short vector far, so the cosine leaves faint vectors out. The errors of faint
vectors still count in `max_abs`, the largest absolute difference.
"""
NEAR_ZERO = 1e-3
"""An output counts as near zero where no value of the original is larger, for example a detector's scores of noise.

Float32 computes a probability with an error of about 1e-7, whatever the probability's size. The direction of such an
output therefore says little. `NEAR_ZERO` is also the least number by which an error is divided to become relative.
"""
ROUNDING = 1e-6
"""The largest difference that is always rounding: a few units in the last place of a float32 number near 1."""


@dataclass(frozen=True)
class Usual:
    """The usual size of one output of the original, over all cases.

    The cosine leaves out the output's vectors whose length is below `faint`. `largest` is the largest absolute value of
    the output. An error is divided by `scale` to become relative: by the largest value, but by at least 1 for logits
    and by at least `NEAR_ZERO` for other outputs; for an output with one number per case, by the spread of the numbers.
    """

    faint: float
    largest: float
    scale: float

    @property
    def is_near_zero(self) -> bool:
        """Whether all values of the output are too small for a direction that means something."""
        return self.largest < NEAR_ZERO


def usual(cases: Sequence[Case], *, pooling: Pooling | None) -> dict[str, Usual]:
    """Return each output's name -> the usual size of the original's output, computed over all cases."""
    names = dict.fromkeys(name for case in cases for name in case.outputs)
    return {name: _usual(name, [case for case in cases if name in case.outputs], pooling) for name in names}


def _usual(name: str, cases: Sequence[Case], pooling: Pooling | None) -> Usual:
    import numpy as np

    lengths: list[float] = []
    largest, single = 0.0, list[float]()
    for case in cases:
        output = case.outputs[name]
        finite = [row[np.isfinite(row)] for row in vectors(name, output, case.inputs, pooling=pooling)]
        lengths += [float(np.linalg.norm(row)) for row in finite]
        single += [float(row[0]) for row in finite if row.size == 1]
        if output.dtype.kind in "fiu":
            values = compared(name, output, case.inputs)
            largest = max(largest, float(np.abs(values[np.isfinite(values)]).max(initial=0)))
    faint = _FAINT * median(lengths) if lengths else 0.0
    if name in LOGITS:
        faint = max(faint, _FAINT_LOGITS)
    spread = max(single) - min(single) if len(single) == len(lengths) > 1 else 0.0
    if spread > NEAR_ZERO * largest:
        return Usual(faint, largest, max(spread, NEAR_ZERO))
    return Usual(faint, largest, max(largest, _LARGE_LOGIT if name in LOGITS else NEAR_ZERO))


def positions(name: str, output: np.ndarray, inputs: Mapping[str, np.ndarray]) -> np.ndarray | None:
    """Return a bool array [batch, sequence] that is true at an output's real positions, where the attention mask has 1.

    The result is None for an output without an axis of positions.
    """
    import numpy as np

    target = inputs.get("decoder_input_ids")
    mask = inputs.get("attention_mask") if target is None else np.ones_like(target)  # every token of a decoder is real
    if mask is None or output.shape[:2] != mask.shape or not (output.ndim > mask.ndim or name in SPANS):
        return None
    return mask.astype(bool)


def rows(inputs: Mapping[str, np.ndarray]) -> np.ndarray | None:
    """Return a bool array [batch] that is true for the rows with at least one real token; None without a mask."""
    import numpy as np

    mask = inputs.get("attention_mask")
    if mask is None or mask.ndim != 2:  # noqa: PLR2004 - batch, sequence
        return None
    return np.asarray(mask.astype(bool).any(axis=1))


def compared(name: str, output: np.ndarray, inputs: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return the values of an output that count: without padded positions, and without rows that have no real token."""
    real, kept = positions(name, output, inputs), rows(inputs)
    if kept is not None and kept.shape == output.shape[:1]:
        real = kept if real is None else real & kept[:, None]
    return output if real is None else output[real]


def vectors(
    name: str, output: np.ndarray, inputs: Mapping[str, np.ndarray], *, pooling: Pooling | None
) -> list[np.ndarray]:
    """Return the vectors that the cosine compares: one float64 vector per row of an output, pooled by `pooling`.

    Rows without a real token are left out.
    """
    import numpy as np

    if output.dtype.kind not in "fiu":
        return []
    real, kept = positions(name, output, inputs), rows(inputs)
    if real is not None:
        places = range(len(output)) if kept is None else kept.nonzero()[0]
        if pooling is not None:
            return list(pool(output, real, pooling)[places])
        return [output[place][real[place]].astype(np.float64).ravel() for place in places]
    sizes = {array.shape[:1] for array in inputs.values()}
    batched = output.ndim > 1 and sizes == {output.shape[:1]}
    if batched and kept is not None:
        output = output[kept]
    return [row.astype(np.float64).ravel() for row in (output if batched else output[None])]


def has_empty_row(case: Case) -> bool:
    """Whether the original gives a row of a case no finite number, in one of the outputs."""
    import numpy as np

    return any(
        row.size and not np.isfinite(row).any()
        for name, output in case.outputs.items()
        for row in vectors(name, output, case.inputs, pooling=None)
    )


def left_out(cases: Sequence[Case], *, usual: Mapping[str, Usual], pooling: Pooling | None) -> list[str]:
    """Return which vectors and rows the cosine leaves out, and why, as the ends of sentences."""
    import numpy as np

    faint = blank = 0
    for case in cases:
        kept = rows(case.inputs)
        blank += 0 if kept is None else int((~kept).sum())
        for name, output in case.outputs.items():
            if not usual[name].is_near_zero:
                lengths = (
                    np.linalg.norm(row) for row in vectors(name, output, case.inputs, pooling=pooling) if row.size > 1
                )
                faint += sum(1 for length in lengths if 0 < length < usual[name].faint)
    kinds = (
        (faint, "faint vector", "whose direction a small error can turn far"),
        (blank, "blank row", "without a token"),
    )
    return [f"{lists.counted(count, kind)}, {why}" for count, kind, why in kinds if count]


def pool(hidden: np.ndarray, mask: np.ndarray, how: Pooling) -> np.ndarray:
    """Return one vector of length 1 per text, float64 [batch, hidden].

    `hidden` is [batch, sequence, hidden]; `mask` is [batch, sequence] with 1 for each token that is not padding. The
    mode `cls` takes the first token that is not padding, also in rows that are padded on the left. The computation
    follows sentence-transformers (`models/Pooling.py`, `Normalize.py`).
    """
    import numpy as np

    counts = mask.astype(bool)
    states = hidden.astype(np.float64)
    if how == "cls":
        vectors = states[np.arange(len(states)), counts.argmax(axis=1)]
    elif how == "max":
        vectors = np.where(counts[:, :, None], states, -np.inf).max(axis=1)
        vectors = np.where(np.isfinite(vectors), vectors, 0)
    else:
        vectors = np.where(counts[:, :, None], states, 0).sum(axis=1) / np.maximum(1, counts.sum(axis=1))[:, None]
    return normalize(vectors)


def normalize(vectors: np.ndarray) -> np.ndarray:
    """Return the vectors, [batch, hidden], scaled to length 1. A vector of zeros stays a vector of zeros."""
    import numpy as np

    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1))
