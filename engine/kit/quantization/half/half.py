"""Half: chosen nodes of a graph run in fp16 or bf16, all remaining nodes in float32, with casts in between."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.kit.onnx import mapped_weights, opsets, topology
from engine.kit.onnx.topology import MessageNames
from engine.kit.quantization.half import signatures
from engine.kit.quantization.half.ranges import FLOAT
from engine.kit.quantization.half.signatures import Kind, Slots

if TYPE_CHECKING:
    import numpy as np
    import onnx

_SCALES = {"QuantizeLinear": 1, "DequantizeLinear": 1}
"""For each operator of a Q/DQ pair, the index of the input that holds the scale."""


def convert(model: onnx.ModelProto, low: AbstractSet[str], types: Mapping[str, str], kind: Kind) -> int:
    """Let the nodes named in `low` compute in half precision, and return the number of inserted casts.

    A float32 tensor keeps its name; the half-precision copy of a tensor gets a new name. Inputs and outputs of the
    model stay float32, and so do tensors that a body of If or Loop reads. Weights are stored in half precision, so no
    cast of a weight runs at inference. `types` are the types of all tensors of the main graph (`ranges.tensor_types`).
    `model` is changed.
    """
    _free_weights(model)
    conversion = _Conversion(model, types, kind)
    for node in list(model.graph.node):
        slots = signatures.of(node, conversion.opsets, kind) if node.name in low else signatures.NONE
        conversion.add(node, slots)
    return conversion.finish()


@dataclass
class _Conversion:
    """The graph during its conversion to half precision: nodes in order, half-precision copies, and float32 tensors."""

    model: onnx.ModelProto
    types: Mapping[str, str]
    kind: Kind
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    halves: dict[str, str] = field(default_factory=dict)
    singles: set[str] = field(default_factory=set)
    casts: int = 0

    def __post_init__(self) -> None:
        self.opsets = opsets.versions(self.model)
        self.code = _code(self.kind)
        self.weights = topology.initializers(self.model.graph)
        self.names = MessageNames(self.model)
        self.singles |= {value.name for value in self.model.graph.input} | set(self.weights)

    def add(self, node: onnx.NodeProto, slots: Slots) -> None:
        """Add a node; the inputs and outputs that `slots` allows are in half precision."""
        for name in sorted(topology.captured(node)):
            self._single(name)
        for index, name in enumerate(node.input):
            if self.types.get(name) != FLOAT:
                continue
            if slots.takes(index):
                node.input[index] = self._half(name, scale=_SCALES.get(node.op_type) == index)
            else:
                self._single(name)
        self.nodes.append(node)
        lowered = False
        for index, name in enumerate(node.output):
            if self.types.get(name) == FLOAT and slots.gives(index):
                node.output[index] = self.halves[name] = self._twin(name)
                lowered = True
            elif name:
                self.singles.add(name)
        if lowered:
            _retype(node, self.code, self.kind)

    def finish(self) -> int:
        """Write the converted nodes into the model, remove unread weights, and return the number of casts."""
        for value in self.model.graph.output:
            self._single(value.name)
        graph = self.model.graph
        del graph.node[:]
        graph.node.extend(self.nodes)
        topology.drop_unread(self.model)
        self._describe()
        return self.casts

    def _half(self, name: str, *, scale: bool = False) -> str:
        """Return the name of a tensor's half-precision copy; the first call adds the copy."""
        if name not in self.halves:
            self.halves[name] = self._twin(name)
            if name in self.weights:
                tensor = _lowered(self.weights[name], self.halves[name], self.kind, scale=scale)
                self.model.graph.initializer.append(tensor)
            else:
                self._cast(name, self.halves[name], self.code)
        return self.halves[name]

    def _single(self, name: str) -> None:
        """Cast a tensor that exists only in half precision back to float32, under the tensor's own name."""
        if name in self.halves and name not in self.singles:
            self._cast(self.halves[name], name, 1)
            self.singles.add(name)

    def _cast(self, source: str, target: str, code: int) -> None:
        from onnx import helper

        self.nodes.append(helper.make_node("Cast", [source], [target], f"{target}_cast", to=code))
        self.casts += 1

    def _twin(self, name: str) -> str:
        return self.names.free(f"{name}_{self.kind}")

    def _describe(self) -> None:
        """State the type of every half-precision copy in the model, and the copy's shape where the shape is known."""
        graph = self.model.graph
        computed = {name for node in graph.node for name in node.output}
        described = {value.name: value for value in (*graph.value_info, *graph.input, *graph.output)}
        for name, twin in self.halves.items():
            if twin not in computed:
                continue
            value = graph.value_info.add()
            if name in described:
                value.CopyFrom(described[name])
            value.name = twin
            value.type.tensor_type.elem_type = self.code
        topology.remove(graph.value_info, lambda value: value.name in self.halves and value.name not in computed)


def rounded(values: np.ndarray, kind: Kind) -> np.ndarray:
    """Return float32 numbers in half precision; numbers beyond the range of the half precision become infinite."""
    import numpy as np
    from onnx import helper

    with np.errstate(over="ignore"):
        return values.astype(helper.tensor_dtype_to_np_dtype(_code(kind)))


def _code(kind: Kind) -> int:
    """Return the number that stands for a half-precision type in ONNX."""
    from onnx import TensorProto

    return int(TensorProto.FLOAT16 if kind == "fp16" else TensorProto.BFLOAT16)


def _lowered(tensor: onnx.TensorProto, name: str, kind: Kind, *, scale: bool) -> onnx.TensorProto:
    """Return a weight in half precision.

    A quantization scale that would be rounded to 0 becomes the smallest number above 0.
    """
    import numpy as np

    values = mapped_weights.array(tensor)
    if scale:
        values = np.maximum(values, np.float32(signatures.SMALLEST[kind]))
    return mapped_weights.tensor_of(rounded(values, kind), name)


def _retype(node: onnx.NodeProto, code: int, kind: Kind) -> None:
    """Change the attribute that sets the output type of a Cast or of a constant."""
    import numpy as np
    from onnx import helper, numpy_helper

    for attribute in node.attribute:
        if node.op_type == "Cast" and attribute.name == "to":
            attribute.i = code
        elif node.op_type in {"Constant", "ConstantOfShape"} and attribute.name.startswith("value"):
            values = (
                numpy_helper.to_array(attribute.t) if attribute.HasField("t") else helper.get_attribute_value(attribute)
            )
            tensor = numpy_helper.from_array(rounded(np.asarray(values, np.float32), kind))
            attribute.CopyFrom(helper.make_attribute("value", tensor))
            return
    if node.op_type == "ConstantOfShape":  # without a value it gives zeros in float32
        tensor = numpy_helper.from_array(rounded(np.zeros(1, np.float32), kind))
        node.attribute.append(helper.make_attribute("value", tensor))


def _free_weights(model: onnx.ModelProto) -> None:
    """Remove weights from the inputs of the graph; before IR version 4 each weight had to be an input."""
    topology.remove_named(model.graph.input, topology.initializers(model.graph))
    model.ir_version = max(model.ir_version, opsets.WEIGHTS_NEED_NO_INPUT)
