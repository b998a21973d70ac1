"""Trials: variants of one graph, run on the CPU as they are written; weights lie on disk once for all of them."""

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
    """The graph that variants are made of, in a folder of its own with its weights in a file beside it."""

    base: Path

    @classmethod
    def of(cls, model: onnx.ModelProto, folder: Path) -> Trials:
        """Write the graph to `folder`; its weights go out of `model`."""
        onnx_files.save(model, folder, threshold=0)
        return cls(folder)

    def graph(self) -> onnx.ModelProto:
        """Return a fresh copy of the graph; large weights stay on disk."""
        return onnx_files.load_graph(self.base)

    def session(self, graph: onnx.ModelProto) -> onnxruntime.InferenceSession:
        """Open a variant on one thread, without optimizations: the same inputs give the same bits."""
        with TemporaryDirectory(dir=self.base.parent) as folder:
            for name in onnx_files.data_files(graph):
                onnx_files.link_file(self.base / name, Path(folder) / name)
            onnx_files.save_graph(graph, Path(folder))
            return ort.unoptimized(Path(folder))

    def whole(self, graph: onnx.ModelProto) -> onnx.ModelProto:
        """Bring the weights that a variant still has on disk into memory, and return it."""
        for tensor in onnx_files.tensors(graph):
            external_data.read(tensor, self.base)
        return graph

    def tensor(self, tensor: onnx.TensorProto) -> onnx.TensorProto:
        """Return a copy of a stored tensor, in memory."""
        copy = type(tensor)()
        copy.CopyFrom(tensor)
        external_data.read(copy, self.base)
        return copy
