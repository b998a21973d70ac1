"""Half: chosen nodes of a graph in fp16 or bf16, all others in float32, and the casts between them."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.kit.onnx import opsets, topology
from engine.kit.onnx.topology import TensorNames
from engine.kit.quantization.half import signatures
from engine.kit.quantization.half.ranges import FLOAT
from engine.kit.quantization.half.signatures import Kind, Slots

if TYPE_CHECKING:
    import numpy as np
    import onnx

_SMALLEST = {"fp16": 2.0**-24, "bf16": 2.0**-133}
_SCALES = {"QuantizeLinear": 1, "DequantizeLinear": 1}


def convert(model: onnx.ModelProto, low: AbstractSet[str], types: Mapping[str, str], kind: Kind) -> int:
    """Let the nodes named in `low` compute in half precision; return how many casts that took.

    A tensor keeps its name where it is float32 and gets a twin in half precision where that is asked for. What the
    model takes and gives stays as it is, and so do tensors that a body of If or Loop reads. Weights are converted
    ahead. `types` are those of all tensors of the main graph (`ranges.tensor_types`); the model is changed.
    """
    _free_weights(model)
    conversion = _Conversion(model, types, kind)
    for node in list(model.graph.node):
        slots = signatures.of(node, conversion.opsets, kind) if node.name in low else signatures.NONE
        conversion.take(node, slots)
    return conversion.finish()


@dataclass
class _Conversion:
    """The graph in the making: nodes in order, and which tensors are there in which precision."""

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
        self.names = TensorNames(self.model)
        self.singles |= {value.name for value in self.model.graph.input} | set(self.weights)

    def take(self, node: onnx.NodeProto, slots: Slots) -> None:
        """Add a node, its inputs and outputs where `slots` allows in half precision."""
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
        """Put the nodes into the model, and leave out what nobody reads any more."""
        for value in self.model.graph.output:
            self._single(value.name)
        graph = self.model.graph
        del graph.node[:]
        graph.node.extend(self.nodes)
        topology.drop_unread(self.model)
        self._describe()
        return self.casts

    def _half(self, name: str, *, scale: bool = False) -> str:
        """Return the half twin of a tensor, made where it is not there yet."""
        if name not in self.halves:
            self.halves[name] = self._twin(name)
            if name in self.weights:
                tensor = _lowered(self.weights[name], self.halves[name], self.kind, scale=scale)
                self.model.graph.initializer.append(tensor)
            else:
                self._cast(name, self.halves[name], self.code)
        return self.halves[name]

    def _single(self, name: str) -> None:
        """See to it that a tensor is there in float32 under its own name."""
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
        """Say the type of every twin, and its shape where that of the tensor was known."""
        graph = self.model.graph
        made = {name for node in graph.node for name in node.output}
        known = {value.name: value for value in (*graph.value_info, *graph.input, *graph.output)}
        for name, twin in self.halves.items():
            if twin not in made:
                continue
            value = graph.value_info.add()
            if name in known:
                value.CopyFrom(known[name])
            value.name = twin
            value.type.tensor_type.elem_type = self.code
        for index in reversed(range(len(graph.value_info))):
            if graph.value_info[index].name in self.halves and graph.value_info[index].name not in made:
                del graph.value_info[index]


def rounded(values: np.ndarray, kind: Kind) -> np.ndarray:
    """Return float32 numbers in half precision, rounded to the nearest; infinite where they are beyond it."""
    import numpy as np
    from onnx import helper

    with np.errstate(over="ignore"):
        return values.astype(helper.tensor_dtype_to_np_dtype(_code(kind)))


def _code(kind: Kind) -> int:
    """Return ONNX's number of a half precision."""
    from onnx import TensorProto

    return int(TensorProto.FLOAT16 if kind == "fp16" else TensorProto.BFLOAT16)


def _lowered(tensor: onnx.TensorProto, name: str, kind: Kind, *, scale: bool) -> onnx.TensorProto:
    """Return a weight in half precision. A scale that would become 0 becomes the least number above it."""
    import numpy as np
    from onnx import numpy_helper

    values = numpy_helper.to_array(tensor)
    if scale:
        values = np.maximum(values, np.float32(_SMALLEST[kind]))
    return numpy_helper.from_array(rounded(values, kind), name)


def _retype(node: onnx.NodeProto, code: int, kind: Kind) -> None:
    """Change the attribute by which a node says the type of its output."""
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
    if node.op_type == "ConstantOfShape":  # it says nothing: zeros in float32
        tensor = numpy_helper.from_array(rounded(np.zeros(1, np.float32), kind))
        node.attribute.append(helper.make_attribute("value", tensor))


def _free_weights(model: onnx.ModelProto) -> None:
    """Let weights be no inputs of the graph, as they had to be before IR version 4."""
    stored = {tensor.name for tensor in model.graph.initializer}
    kept = [value for value in model.graph.input if value.name not in stored]
    if len(kept) < len(model.graph.input):
        inputs = [type(value).FromString(value.SerializeToString()) for value in kept]
        del model.graph.input[:]
        model.graph.input.extend(inputs)
    model.ir_version = max(model.ir_version, 4)
