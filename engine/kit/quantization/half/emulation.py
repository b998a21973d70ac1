"""Emulation: half precision on a CPU as it is on a GPU, each tensor rounded and overflowing where it would there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.kit.onnx import onnx_files, shapes, topology

if TYPE_CHECKING:
    from pathlib import Path

    import onnx

_SAYING = frozenset({"Constant", "ConstantOfShape"})


def kinds(model: onnx.ModelProto) -> list[str]:
    """Return which half precisions a model computes in: "fp16", "bf16"."""
    from onnx import TensorProto

    names = {TensorProto.FLOAT16: "fp16", TensorProto.BFLOAT16: "bf16"}
    found = {tensor.data_type for tensor in onnx_files.tensors(model)}
    found |= {a.i for node in onnx_files.nodes(model) if node.op_type == "Cast" for a in node.attribute}
    found |= {value.type.tensor_type.elem_type for value in (*model.graph.input, *model.graph.value_info)}
    return [name for code, name in names.items() if code in found]


def emulate(model: onnx.ModelProto, directory: Path) -> None:
    """Let every node that computes in half precision compute in float32 between two roundings; changes the model.

    ONNX Runtime on a CPU has few kernels for half precision. It inserts casts of its own and takes out what it holds
    for superfluous, so that numbers beyond 65504 pass where a GPU gives infinity. Here a node gets what half precision
    left of its inputs, and its outputs are rounded to half precision: as kernels do that add up in float32. Those
    that add up in half precision are less exact. To be run with optimizations disabled. Bodies of If and Loop are left
    as they are. `directory` is where external data of the model lies.
    """
    _Emulation(model, _halves(model, directory)).run()


@dataclass
class _Emulation:
    """The graph in the making. A tensor `h` in half precision keeps its name; `h_wide` is the same in float32."""

    model: onnx.ModelProto
    halves: dict[str, int]
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    wide: dict[str, str] = field(default_factory=dict)

    def run(self) -> None:
        graph = self.model.graph
        self.weights = topology.initializers(graph)
        for node in list(graph.node):
            self._take(node)
        del graph.node[:]
        graph.node.extend(self.nodes)
        topology.drop_unread(self.model)

    def _take(self, node: onnx.NodeProto) -> None:
        rounds = [index for index, name in enumerate(node.output) if name in self.halves]
        for index, name in enumerate(node.input):
            if name in self.halves:
                node.input[index] = self._widened(name)
        self.nodes.append(node)
        if node.op_type == "Cast" and rounds:
            return  # it rounds by itself
        if node.op_type in _SAYING and rounds:
            _say_single(node)
        for index in rounds:
            name = node.output[index]
            node.output[index] = f"{name}_raw"
            self._cast(f"{name}_raw", name, self.halves[name])

    def _widened(self, name: str) -> str:
        from onnx import TensorProto, numpy_helper

        if name not in self.wide:
            self.wide[name] = f"{name}_wide"
            if name in self.weights:
                values = numpy_helper.to_array(self.weights[name]).astype("float32")
                self.model.graph.initializer.append(numpy_helper.from_array(values, f"{name}_wide"))
            else:
                self._cast(name, f"{name}_wide", TensorProto.FLOAT)
        return self.wide[name]

    def _cast(self, source: str, target: str, code: int) -> None:
        from onnx import helper

        self.nodes.append(helper.make_node("Cast", [source], [target], f"{target}_emulated", to=code))


def _halves(model: onnx.ModelProto, directory: Path) -> dict[str, int]:
    """Return the tensors of the main graph that are in half precision, with their types."""
    from onnx import TensorProto

    wanted = {TensorProto.FLOAT16, TensorProto.BFLOAT16}
    return {name: code for name, code in _types(model, directory) if code in wanted}


def _types(model: onnx.ModelProto, directory: Path) -> Iterator[tuple[str, int]]:
    import onnx

    graph = model.graph
    made = {name for node in graph.node for name in node.output if name}
    said = {value.name: value.type.tensor_type.elem_type for value in (*graph.value_info, *graph.input, *graph.output)}
    if not made <= set(said):
        inferred = onnx.shape_inference.infer_shapes(shapes.skeleton(model, directory)).graph
        said = {value.name: value.type.tensor_type.elem_type for value in inferred.value_info} | said
    yield from said.items()
    yield from ((tensor.name, tensor.data_type) for tensor in graph.initializer)


def _say_single(node: onnx.NodeProto) -> None:
    """Let a constant be float32; the numbers stay those that half precision left."""
    from onnx import helper, numpy_helper

    for attribute in node.attribute:
        if attribute.name == "value":
            values = numpy_helper.to_array(attribute.t).astype("float32")
            attribute.CopyFrom(helper.make_attribute("value", numpy_helper.from_array(values)))
