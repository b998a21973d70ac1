"""Trials: changed copies of one graph, run on the CPU without optimizations. All copies share the weights on disk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine.kit.onnx import ir_models, onnx_files
from engine.kit.onnx.onnx_files import Input
from engine.runtimes.onnxruntime import session as ort

if TYPE_CHECKING:
    import onnx_ir as ir
    import onnxruntime


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
