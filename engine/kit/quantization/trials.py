"""Trials: changed copies of one graph, run on the CPU without optimizations, and the samples that they run on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine.kit.onnx import ir_models, onnx_files
from engine.kit.onnx.onnx_files import Input
from engine.runtimes.onnxruntime import session as ort

if TYPE_CHECKING:
    import numpy as np
    import onnx_ir as ir
    import onnxruntime

_HOLD_OUT_STRIDE = 4
"""Every fourth sample is held out from calibration: the quantized model is judged on the held-out samples."""
_FEW = 8
"""Lower limit of the number of samples of which some are held out; fewer samples all calibrate and all judge."""
JUDGES = 8
"""Upper limit of the number of samples that judge, because each layer may need a run on all of them."""


@dataclass(frozen=True)
class Trials:
    """A model of which changed copies are run; its large weights are mapped from a file in the folder `base`."""

    base: Path
    model: ir.Model
    inputs: Mapping[str, Input]

    @classmethod
    def of(cls, model: ir.Model, folder: Path) -> Trials:
        """Write the model to `folder`, with its weights in a separate file."""
        inputs = onnx_files.inputs(ir_models.proto(model))
        return cls(folder, apart(model, folder), inputs)

    @property
    def scratch(self) -> Path:
        """The folder for files of sessions."""
        return self.base.parent

    def graph(self) -> ir.Model:
        """Return a new copy of the unchanged model; large weights are mapped."""
        return self.model.clone()

    def session(self, model: ir.Model) -> onnxruntime.InferenceSession:
        """Open a changed copy on one thread and without optimizations, so that equal inputs give equal bits."""
        return opened(model, self.scratch)


def apart(model: ir.Model, folder: Path) -> ir.Model:
    """Return the model with its large weights mapped from files in `folder`, which sessions link instead of copying."""
    onnx_files.save(ir_models.proto(model), folder, threshold=0)
    return ir_models.load(folder)


def opened(model: ir.Model, scratch: Path) -> onnxruntime.InferenceSession:
    """Open a model as `session.unoptimized_graph` does."""
    return ort.unoptimized_graph(ir_models.proto(model), scratch)


def rows_apart(inputs: Mapping[str, Input], samples: Sequence[Mapping[str, np.ndarray]]) -> list[dict[str, np.ndarray]]:
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


def held_out(
    samples: Sequence[Mapping[str, np.ndarray]], judges: int = JUDGES
) -> tuple[list[Mapping[str, np.ndarray]], list[Mapping[str, np.ndarray]]]:
    """Return the samples that calibrate the model, and some that judge it; of enough samples, other ones."""
    calibrating, judging = list(samples), list(samples)
    if len(samples) >= _FEW:
        calibrating = [sample for number, sample in enumerate(samples, 1) if number % _HOLD_OUT_STRIDE]
        judging = judging[_HOLD_OUT_STRIDE - 1 :: _HOLD_OUT_STRIDE]
    return calibrating, judging[:: -(-len(judging) // judges)]
