"""Q/DQ nodes: chosen MatMuls read quantized activations and weights; smoothing is folded into normalizations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.kit.onnx import mapped_weights, onnx_files, topology
from engine.kit.onnx.topology import MessageNames
from engine.kit.quantization import low_bits
from engine.kit.quantization.activation_ranges import Scaling
from engine.kit.quantization.low_bits import BLOCK, CODES, Kind
from engine.kit.quantization.qdq.matmuls import Group, Weights

if TYPE_CHECKING:
    import numpy as np
    import onnx

_SCALED_BY_CHANNEL = {"LayerNormalization": (1, 2), "RMSNormalization": (1,)}
"""Normalizations, and the indices of their inputs that multiply or shift each channel."""
_CONSTANTS = frozenset({"Constant", "Identity", "Transpose"})


def insert(model: onnx.ModelProto, weights: Weights, chosen: Mapping[Group, Scaling], kind: Kind) -> None:
    """Quantize the MatMuls of the chosen groups; `model` is changed, and unread weights are removed.

    An activation that only the MatMuls of its group read is divided by its smoothing factors in the normalization that
    produces the activation. Where other nodes read the activation of a group, or where no normalization produces the
    activation, an added Mul divides the activation by its smoothing factors. Each activation and each weight is
    quantized once, however many MatMuls read it.
    """
    insertion = _Insertion(model, weights, kind)
    sources = {group.source: (group, scaling) for group, scaling in chosen.items()}
    for node in list(model.graph.node):
        group, scaling = sources.get(node.input[0] if node.input else "", (None, None))
        if group is not None and scaling is not None and node.op_type == "MatMul" and node.output[0] in group.results:
            insertion.quantize(node, group, scaling)
        insertion.nodes.append(node)
    insertion.finish()


@dataclass
class _Insertion:
    """The graph while nodes are inserted: `tensors` and `quantized` name the quantized activations and weights."""

    model: onnx.ModelProto
    weights: Weights
    kind: Kind
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    tensors: dict[str, str] = field(default_factory=dict)
    quantized: dict[tuple[str, str], str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        graph = self.model.graph
        self.names = MessageNames(self.model)
        self.producers = topology.producers(graph)
        self.values = {value.name: value for value in (*graph.value_info, *graph.input)}

    def quantize(self, node: onnx.NodeProto, group: Group, scaling: Scaling) -> None:
        """Let a MatMul read its quantized activation and its quantized weight."""
        if node.input[0] not in self.tensors:
            self.tensors[node.input[0]] = self._activation(group, scaling)
        source = "" if scaling.factors is None else group.source
        key = (node.input[1], source)
        if key not in self.quantized:
            self.quantized[key] = self._weight(node.input[1], scaling.factors)
        node.input[0], node.input[1] = self.tensors[node.input[0]], self.quantized[key]

    def finish(self) -> None:
        """Write the changed nodes into the model, and remove unread constants."""
        graph = self.model.graph
        del graph.node[:]
        graph.node.extend(self.nodes)
        _prune(self.model)

    def _activation(self, group: Group, scaling: Scaling) -> str:
        """Add nodes that smooth and quantize the group's input; return the name of the resulting tensor."""
        name = group.source
        if scaling.factors is not None and not self._folded(group, scaling.factors):
            inverse = self._store(f"{name}_smoothing", 1 / scaling.factors)
            name = self._node("Mul", [name, inverse], f"{group.source}_smoothed")
            self._describe(name, group.source, "FLOAT")
        if scaling.scale is None:
            return name
        scale = self._store(f"{group.source}_scale", scaling.scale)
        zero = self._store(f"{group.source}_zero", low_bits.codes(scaling.scale * 0, scaling.scale, self.kind))
        codes = self._node("QuantizeLinear", [name, scale, zero], f"{group.source}_quantized")
        self._describe(codes, group.source, CODES[self.kind])
        result = self._node("DequantizeLinear", [codes, scale, zero], f"{group.source}_dequantized")
        self._describe(result, group.source, "FLOAT")
        return result

    def _weight(self, name: str, factors: np.ndarray | None) -> str:
        """Store a weight, smoothed and quantized; return the name of the weight's dequantized tensor."""
        values = self.weights.array(name)
        values = values if factors is None else values * factors[:, None]
        scales = low_bits.weight_scales(values, self.kind)
        codes = low_bits.codes(values, low_bits.spread(scales, self.kind), self.kind)
        stored = [self._store(f"{name}_{CODES[self.kind].lower()}", codes), self._store(f"{name}_scale", scales)]
        attributes = {"int8": {"axis": 1}, "fp8": {}, "int4": {"axis": 0, "block_size": BLOCK}}[self.kind]
        return self._node("DequantizeLinear", stored, f"{name}_dequantized", **attributes)

    def _folded(self, group: Group, factors: np.ndarray) -> bool:
        """Fold the smoothing factors of the group's input into the normalization before it, and return True.

        Returns False, and changes nothing, where nodes outside the group read the activation, or where the node that
        produces the activation does not multiply by a value per channel.
        """
        producer = self.producers.get(group.source)
        if producer is None or not self._alone(group):
            return False
        places: Sequence[int] = _SCALED_BY_CHANNEL.get(producer.op_type, ())
        if producer.op_type == "Mul":  # the last node of a normalization that is written in small nodes
            places = [i for i, name in enumerate(producer.input) if self.weights.shape(name) == factors.shape][:1]
        places = [place for place in places if place < len(producer.input) and producer.input[place]]
        if not places or any(self.weights.shape(producer.input[place]) != factors.shape for place in places):
            return False
        for place in places:
            name = producer.input[place]
            producer.input[place] = self._store(f"{name}_smoothed", self.weights.array(name) / factors)
        return True

    def _alone(self, group: Group) -> bool:
        """Whether only the MatMuls of the group read the tensor that is the group's input."""
        outputs = {value.name for graph in onnx_files.graphs(self.model.graph) for value in graph.output}
        readers = [node for node in onnx_files.nodes(self.model) if group.source in node.input]
        return group.source not in outputs and all(
            node.output[0] in group.results and list(node.input).count(group.source) == 1 for node in readers
        )

    def _node(self, operator: str, inputs: Sequence[str], result: str, **attributes: int) -> str:
        from onnx import helper

        name = self.names.free(result)
        self.nodes.append(helper.make_node(operator, list(inputs), [name], name, **attributes))
        return name

    def _describe(self, name: str, like: str, dtype: str) -> None:
        """Give a new tensor the shape of the tensor `like`, if the model states that shape."""
        from onnx import TensorProto

        if like in self.values:
            value = self.model.graph.value_info.add()
            value.CopyFrom(self.values[like])
            value.name = name
            value.type.tensor_type.elem_type = TensorProto.DataType.Value(dtype)

    def _store(self, name: str, values: np.ndarray) -> str:
        free = self.names.free(name)
        self.model.graph.initializer.append(mapped_weights.tensor_of(values, free))
        return free


def _prune(model: onnx.ModelProto) -> None:
    """Remove unread constants, and the Identity and Transpose nodes that only such constants pass through."""
    graph = model.graph
    stored = {tensor.name for tensor in graph.initializer}
    count = 0
    while count != len(graph.node):
        count = len(graph.node)
        _remove_unread_constants(model)
    topology.drop_unread(model)
    removed = stored - {tensor.name for tensor in graph.initializer}
    for values in (graph.input, graph.value_info):
        topology.remove_named(values, removed)


def _remove_unread_constants(model: onnx.ModelProto) -> None:
    read = topology.consumed(model)
    topology.remove(model.graph.node, lambda node: node.op_type in _CONSTANTS and node.output[0] not in read)
