"""Outputs: which of a model's numbers are real, what is a vector among them, and how large they usually are."""

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
"""Logits over the positions themselves, [batch, sequence]."""
LOGITS = SPANS | {"logits"}

_LARGE_LOGIT = 1.0
"""Softmax gives logits their meaning: an error is to be seen against 1, however small the logits are."""
_FAINT_LOGITS = 0.1
"""Where all logits lie this close together, every class is about as likely as every other."""
_FAINT = 0.25
"""A vector shorter than this share of the usual one has no direction to speak of: a small error turns it round. Of
logits it is a borderline sample. Its error still counts as such."""


@dataclass(frozen=True)
class Usual:
    """How large an output of the original is: the length below which a vector is faint, and the largest number."""

    faint: float
    largest: float


def usual(cases: Sequence[Case], *, pooling: Pooling | None) -> dict[str, Usual]:
    """Return how large each output is over all cases, in the original."""
    import numpy as np

    lengths: dict[str, list[float]] = {}
    largest: dict[str, float] = {}
    for case in cases:
        for name, output in case.outputs.items():
            rows = [row[np.isfinite(row)] for row in vectors(name, output, case.inputs, pooling=pooling)]
            lengths.setdefault(name, []).extend(float(np.linalg.norm(row)) for row in rows)
            values = [0.0] if output.dtype.kind not in "fiu" else output[np.isfinite(output)]
            largest[name] = max(largest.get(name, 0.0), float(np.abs(values).max(initial=0)))
    found = {}
    for name, most in largest.items():
        faint = _FAINT * median(lengths[name]) if lengths[name] else 0.0
        logits = name in LOGITS
        found[name] = Usual(max(faint, _FAINT_LOGITS if logits else 0), max(most, _LARGE_LOGIT) if logits else most)
    return found


def positions(name: str, output: np.ndarray, inputs: Mapping[str, np.ndarray]) -> np.ndarray | None:
    """Return which positions of an output are real, bool [batch, sequence]; None where it has no positions."""
    import numpy as np

    target = inputs.get("decoder_input_ids")
    mask = inputs.get("attention_mask") if target is None else np.ones_like(target)  # a decoder has a mask of its own
    if mask is None or output.shape[:2] != mask.shape or not (output.ndim > mask.ndim or name in SPANS):
        return None
    return mask.astype(bool)


def vectors(
    name: str, output: np.ndarray, inputs: Mapping[str, np.ndarray], *, pooling: Pooling | None
) -> list[np.ndarray]:
    """Return what a cosine is taken of: a float64 vector per row, pooled where the model embeds texts."""
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
