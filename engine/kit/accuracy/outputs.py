"""Outputs of models: drops padding, splits outputs into vectors to compare, and finds their usual magnitude."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.kit.accuracy.pooling import pool
from engine.kit.bench.stats import median

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


@dataclass(frozen=True)
class Usual:
    """The usual size of one output of the original: of its vectors and of its values.

    The cosine leaves out the output's vectors whose length is below `faint`. `largest` is the largest absolute value of
    the output in all cases, but at least 1 for logits.
    """

    faint: float
    largest: float


def usual(cases: Sequence[Case], *, pooling: Pooling | None) -> dict[str, Usual]:
    """Return each output's name -> the usual size of the original's output, computed over all cases."""
    import numpy as np

    lengths: dict[str, list[float]] = {}
    largest: dict[str, float] = {}
    for case in cases:
        for name, output in case.outputs.items():
            rows = [row[np.isfinite(row)] for row in vectors(name, output, case.inputs, pooling=pooling)]
            lengths.setdefault(name, []).extend(float(np.linalg.norm(row)) for row in rows)
            values = [0.0] if output.dtype.kind not in "fiu" else output[np.isfinite(output)]
            largest[name] = max(largest.get(name, 0.0), float(np.abs(values).max(initial=0)))
    sizes = {}
    for name, most in largest.items():
        faint = _FAINT * median(lengths[name]) if lengths[name] else 0.0
        logits = name in LOGITS
        sizes[name] = Usual(max(faint, _FAINT_LOGITS if logits else 0), max(most, _LARGE_LOGIT) if logits else most)
    return sizes


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


def vectors(
    name: str, output: np.ndarray, inputs: Mapping[str, np.ndarray], *, pooling: Pooling | None
) -> list[np.ndarray]:
    """Return the vectors that the cosine compares: one float64 vector per row of an output, pooled by `pooling`."""
    import numpy as np

    if output.dtype.kind not in "fiu":
        return []
    real = positions(name, output, inputs)
    if real is not None:
        if pooling is not None:
            return list(pool(output, real, pooling))
        return [row[kept].astype(np.float64).ravel() for row, kept in zip(output, real, strict=True)]
    sizes = {array.shape[:1] for array in inputs.values()}
    batched = output.ndim > 1 and sizes == {output.shape[:1]}
    return [row.astype(np.float64).ravel() for row in (output if batched else output[None])]
