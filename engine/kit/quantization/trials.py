"""Trials: changed copies of one graph, run on the CPU without optimizations. All copies share the weights on disk."""

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
    """A model of which changed copies are run: the folder `base` holds its graph and, in another file, its weights."""

    base: Path

    @classmethod
    def of(cls, model: onnx.ModelProto, folder: Path) -> Trials:
        """Write the model to `folder`, with its weights in a separate file. `model` lacks its weights afterwards."""
        onnx_files.save(model, folder, threshold=0)
        return cls(folder)

    def graph(self) -> onnx.ModelProto:
        """Return a new copy of the unchanged graph; large weights stay on disk."""
        return onnx_files.load_graph(self.base)

    def session(self, graph: onnx.ModelProto) -> onnxruntime.InferenceSession:
        """Open `graph` on one thread and without optimizations, so that equal inputs give equal bits."""
        with TemporaryDirectory(dir=self.base.parent) as folder:
            for name in onnx_files.data_files(graph):
                onnx_files.link_file(self.base / name, Path(folder) / name)
            onnx_files.save_graph(graph, Path(folder))
            return ort.unoptimized(Path(folder))

    def whole(self, graph: onnx.ModelProto) -> onnx.ModelProto:
        """Return `graph` with all of its weights in memory."""
        for tensor in onnx_files.tensors(graph):
            external_data.read(tensor, self.base)
        return graph

    def tensor(self, tensor: onnx.TensorProto) -> onnx.TensorProto:
        """Return a copy of a stored tensor with its data in memory."""
        copy = type(tensor)()
        copy.CopyFrom(tensor)
        external_data.read(copy, self.base)
        return copy
