"""Emulation of a GPU's half precision on a CPU: each tensor is rounded, and overflows where the GPU's would."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.kit.onnx import mapped_weights, onnx_files, shapes, topology

if TYPE_CHECKING:
    from pathlib import Path

    import onnx

_CONSTANTS = frozenset({"Constant", "ConstantOfShape"})


def kinds(model: onnx.ModelProto) -> list[str]:
    """Return the half precisions that a model computes in: "fp16", "bf16"."""
    from onnx import TensorProto

    names = {TensorProto.FLOAT16: "fp16", TensorProto.BFLOAT16: "bf16"}
    codes = {tensor.data_type for tensor in onnx_files.tensors(model)}
    codes |= {a.i for node in onnx_files.nodes(model) if node.op_type == "Cast" for a in node.attribute}
    codes |= {value.type.tensor_type.elem_type for value in (*model.graph.input, *model.graph.value_info)}
    return [name for code, name in names.items() if code in codes]


def emulate(model: onnx.ModelProto, directory: Path) -> None:
    """Let half-precision nodes compute in float32 on numbers rounded to half precision; `model` is changed.

    ONNX Runtime has few half-precision kernels for CPUs. ONNX Runtime inserts casts to float32, and removes casts that
    it considers redundant, so a number above 65504 stays finite where a GPU gives infinity. In the emulation, the
    inputs and outputs of each node are rounded to half precision, as by GPU kernels that sum in float32. GPU kernels
    with half-precision sums are less exact than the emulation. A model that was changed for the emulation must run with
    ONNX Runtime's optimizations disabled. The graphs inside If and Loop nodes are not changed. `directory` holds the
    external data of the model.
    """
    _Emulation(model, _halves(model, directory)).run()


@dataclass
class _Emulation:
    """The changed graph. A half-precision tensor `h` keeps its name, and `h_wide` holds the same numbers in float32."""

    model: onnx.ModelProto
    halves: dict[str, int]
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    wide: dict[str, str] = field(default_factory=dict)

    def run(self) -> None:
        graph = self.model.graph
        self.weights = topology.initializers(graph)
        for node in list(graph.node):
            self._add(node)
        del graph.node[:]
        graph.node.extend(self.nodes)
        topology.drop_unread(self.model)

    def _add(self, node: onnx.NodeProto) -> None:
        halves = [index for index, name in enumerate(node.output) if name in self.halves]
        for index, name in enumerate(node.input):
            if name in self.halves:
                node.input[index] = self._widened(name)
        self.nodes.append(node)
        if node.op_type == "Cast" and halves:
            return  # a Cast rounds by itself
        if node.op_type in _CONSTANTS and halves:
            _make_single(node)
        for index in halves:
            name = node.output[index]
            node.output[index] = f"{name}_raw"
            self._cast(f"{name}_raw", name, self.halves[name])

    def _widened(self, name: str) -> str:
        from onnx import TensorProto

        if name not in self.wide:
            self.wide[name] = f"{name}_wide"
            if name in self.weights:
                values = mapped_weights.array(self.weights[name]).astype("float32")
                self.model.graph.initializer.append(mapped_weights.tensor_of(values, f"{name}_wide"))
            else:
                self._cast(name, f"{name}_wide", TensorProto.FLOAT)
        return self.wide[name]

    def _cast(self, source: str, target: str, code: int) -> None:
        from onnx import helper

        self.nodes.append(helper.make_node("Cast", [source], [target], f"{target}_emulated", to=code))


def _halves(model: onnx.ModelProto, directory: Path) -> dict[str, int]:
    """Return the half-precision tensors of the main graph by name, with ONNX's numbers for the types of the tensors."""
    from onnx import TensorProto

    half_codes = {TensorProto.FLOAT16, TensorProto.BFLOAT16}
    return {name: code for name, code in tensor_types(model, directory).items() if code in half_codes}


def tensor_types(model: onnx.ModelProto, directory: Path) -> dict[str, int]:
    """Return the tensors of the main graph with ONNX's numbers of their types, inferred where the model states none.

    `directory` holds the external data of the model.
    """
    import onnx

    graph = model.graph
    computed = {name for node in graph.node for name in node.output if name}
    stated = {
        value.name: value.type.tensor_type.elem_type for value in (*graph.value_info, *graph.input, *graph.output)
    }
    if not computed <= set(stated):
        inferred = onnx.shape_inference.infer_shapes(shapes.skeleton(model, directory)).graph
        stated = {value.name: value.type.tensor_type.elem_type for value in inferred.value_info} | stated
    return stated | {tensor.name: tensor.data_type for tensor in graph.initializer}


def _make_single(node: onnx.NodeProto) -> None:
    """Turn a constant in half precision into float32; its numbers stay the same."""
    from onnx import helper, numpy_helper

    for attribute in node.attribute:
        if attribute.name == "value":
            values = numpy_helper.to_array(attribute.t).astype("float32")
            attribute.CopyFrom(helper.make_attribute("value", numpy_helper.from_array(values)))
