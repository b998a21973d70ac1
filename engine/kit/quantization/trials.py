"""Trials: variants of one graph, run on the CPU without optimizations. All variants share the weights on disk."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from engine.kit.onnx import external_data, onnx_files
from engine.runtimes.onnxruntime import session as ort

if TYPE_CHECKING:
    import onnx
    import onnxruntime


@dataclass(frozen=True)
class Trials:
    """The original of all variants: the folder `base` holds its graph, and its weights in a separate file."""

    base: Path

    @classmethod
    def of(cls, model: onnx.ModelProto, folder: Path) -> Trials:
        """Write the model to `folder`. `model` lacks its weights afterwards."""
        onnx_files.save(model, folder, threshold=0)
        return cls(folder)

    def graph(self) -> onnx.ModelProto:
        """Return a new copy of the original graph; large weights stay on disk."""
        return onnx_files.load_graph(self.base)

    def session(self, graph: onnx.ModelProto) -> onnxruntime.InferenceSession:
        """Open a variant on one thread and without optimizations: the same inputs give the same bits."""
        with TemporaryDirectory(dir=self.base.parent) as folder:
            for name in onnx_files.data_files(graph):
                onnx_files.link_file(self.base / name, Path(folder) / name)
            onnx_files.save_graph(graph, Path(folder))
            return ort.unoptimized(Path(folder))

    def whole(self, graph: onnx.ModelProto) -> onnx.ModelProto:
        """Return a variant with all of its weights in memory."""
        for tensor in onnx_files.tensors(graph):
            external_data.read(tensor, self.base)
        return graph

    def tensor(self, tensor: onnx.TensorProto) -> onnx.TensorProto:
        """Return a copy of a stored tensor with its data in memory."""
        copy = type(tensor)()
        copy.CopyFrom(tensor)
        external_data.read(copy, self.base)
        return copy
