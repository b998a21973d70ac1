"""Rows: samples of several rows become samples of one row, so that a run needs little memory and little time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    from engine.kit.onnx.onnx_files import Input

_HOLD_OUT_STRIDE = 4
"""Every fourth sample is held out from calibration: the quantized model is judged on the held-out samples."""
_FEW = 8
"""Lower limit of the number of samples of which some are held out; fewer samples all calibrate and all judge."""
JUDGES = 8
"""Upper limit of the number of samples that judge, because each layer may need a run on all of them."""


def apart(inputs: Mapping[str, Input], samples: Sequence[Mapping[str, np.ndarray]]) -> list[dict[str, np.ndarray]]:
    """Return the rows of the samples of a model with `inputs`, each as a sample.

    A sample of a model whose inputs do not all begin with one free axis stays as it is.
    """
    first = {value.shape[0] if value.shape else 1 for value in inputs.values()}
    if len(first) != 1 or not isinstance(next(iter(first)), str):
        return [dict(sample) for sample in samples]
    return [
        {name: sample[name][row : row + 1] for name in inputs}
        for sample in samples
        for row in range(min(len(sample[name]) for name in inputs))
    ]


def divided(
    samples: Sequence[Mapping[str, np.ndarray]], judges: int = JUDGES
) -> tuple[list[Mapping[str, np.ndarray]], list[Mapping[str, np.ndarray]]]:
    """Return the samples that calibrate the model, and some that judge it; of enough samples, other ones."""
    calibrating, judging = list(samples), list(samples)
    if len(samples) >= _FEW:
        calibrating = [sample for number, sample in enumerate(samples, 1) if number % _HOLD_OUT_STRIDE]
        judging = judging[_HOLD_OUT_STRIDE - 1 :: _HOLD_OUT_STRIDE]
    return calibrating, judging[:: -(-len(judging) // judges)]
