"""Trials: changed copies of one graph, run on the CPU without optimizations. All copies share the weights on disk."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine.kit.onnx import onnx_files
from engine.runtimes.onnxruntime import session as ort

if TYPE_CHECKING:
    import onnx
    import onnxruntime


@dataclass(frozen=True)
class Trials:
    """A model of which changed copies are run: the folder `base` holds its graph and, in another file, its weights."""

    base: Path

    @classmethod
    def of(cls, model: onnx.ModelProto, folder: Path) -> Trials:
        """Write the model to `folder`, with its weights in a separate file. `model` lacks its weights afterwards."""
        onnx_files.save(model, folder, threshold=0)
        return cls(folder)

    def graph(self) -> onnx.ModelProto:
        """Return a new copy of the unchanged graph; large weights are mapped."""
        return onnx_files.load_mapped(self.base)

    def session(self, graph: onnx.ModelProto) -> onnxruntime.InferenceSession:
        """Open `graph` on one thread and without optimizations, so that equal inputs give equal bits."""
        return ort.unoptimized_graph(graph, self.base.parent)
