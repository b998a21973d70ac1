"""Q/DQ nodes: chosen layers read quantized activations and weights; smoothing is folded into normalizations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.kit.onnx import surgery
from engine.kit.onnx.surgery import TensorNames
from engine.kit.quantization import low_bits
from engine.kit.quantization.activation_ranges import Scaling
from engine.kit.quantization.low_bits import BLOCK, CODES, Kind
from engine.kit.quantization.qdq.matmuls import CONVOLUTION, Group, Weights

if TYPE_CHECKING:
    import numpy as np
    import onnx_ir as ir

_SCALED_BY_CHANNEL = {"LayerNormalization": (1, 2), "RMSNormalization": (1,)}
"""Normalizations, and the indices of their inputs that multiply or shift each channel."""
_CONSTANTS = frozenset({"Constant", "Identity", "Transpose"})
"""Operators of constants, and those that constants pass through; they are removed where nobody reads them."""


def insert(model: ir.Model, weights: Weights, chosen: Mapping[Group, Scaling], kind: Kind) -> None:
    """Quantize the MatMuls of the chosen groups; `model` is changed, and unread weights are removed.

    An activation that only the MatMuls of its group read is divided by its smoothing factors in the normalization that
    produces the activation. Where other nodes read the activation of a group, or where no normalization produces the
    activation, an added Mul divides the activation by its smoothing factors. Each activation and each weight is
    quantized once, however many MatMuls read it.
    """
    insertion = _Insertion(model.graph, TensorNames(model), weights, kind)
    groups = {result: (group, scaling) for group, scaling in chosen.items() for result in group.results}
    for node in list(model.graph):
        group, scaling = groups.get(surgery.output_names(node)[0], (None, None))
        if group is not None and scaling is not None:
            insertion.quantize(node, group, scaling)
    insertion.share_with_residuals([node for node in model.graph if node.op_type == "Add"])
    for node in reversed(list(model.graph)):
        if node.op_type in _CONSTANTS and surgery.is_unread(node.outputs[0]):
            model.graph.remove(node, safe=True)
    surgery.drop_unread(model.graph.initializers.values())


@dataclass
class _Insertion:
    """The graph while nodes are inserted: `activations` and `quantized` are the quantized activations and weights."""

    graph: ir.Graph
    names: TensorNames
    weights: Weights
    kind: Kind
    activations: dict[str, ir.Value] = field(default_factory=dict)
    quantized: dict[tuple[str, str], ir.Value] = field(default_factory=dict)

    def quantize(self, node: ir.Node, group: Group, scaling: Scaling) -> None:
        """Let a MatMul read its quantized activation and its quantized weight."""
        source, weight = node.inputs[0], surgery.input_names(node)[1]
        if source is not None and group.source not in self.activations:
            self.activations[group.source] = self._activation(node, source, group, scaling)
        key = (weight, "" if scaling.factors is None else group.source)
        if key not in self.quantized:
            self.quantized[key] = self._weight(node, weight, scaling.factors, is_convolution=group.is_convolution)
        node.replace_input_with(0, self.activations[group.source])
        node.replace_input_with(1, self.quantized[key])

    def share_with_residuals(self, additions: Sequence[ir.Node]) -> None:
        """Let a residual addition behind a quantized convolution read the quantized form of its other summand.

        TensorRT adds in the kernel of the convolution, and gives integers there, where both summands are quantized.
        """
        for node in additions:
            for place in (0, 1):
                producer, other = node.inputs[place], node.inputs[1 - place]
                behind = None if producer is None else producer.producer()
                if behind is None or behind.op_type != CONVOLUTION or other is None or not _is_quantized(behind):
                    continue
                if (other.name or "") in self.activations:
                    node.replace_input_with(1 - place, self.activations[other.name or ""])
                    break

    def _activation(self, reader: ir.Node, source: ir.Value, group: Group, scaling: Scaling) -> ir.Value:
        """Add nodes that smooth and quantize the group's input in front of a reader; return the resulting value."""
        import onnx_ir as ir

        value = source
        if scaling.factors is not None and not self._folded(source, group, scaling.factors):
            inverse = self._store(f"{group.source}_smoothing", 1 / scaling.factors)
            value = self._node(reader, "Mul", [source, inverse], f"{group.source}_smoothed")
            _describe(value, source, ir.DataType.FLOAT)
        if scaling.scale is None:
            return value
        scale = self._store(f"{group.source}_scale", scaling.scale)
        zero = self._store(f"{group.source}_zero", low_bits.codes(scaling.scale * 0, scaling.scale, self.kind))
        codes = self._node(reader, "QuantizeLinear", [value, scale, zero], f"{group.source}_quantized")
        _describe(codes, source, ir.DataType[CODES[self.kind]])
        result = self._node(reader, "DequantizeLinear", [codes, scale, zero], f"{group.source}_dequantized")
        _describe(result, source, ir.DataType.FLOAT)
        return result

    def _weight(self, reader: ir.Node, name: str, factors: np.ndarray | None, *, is_convolution: bool) -> ir.Value:
        """Store a weight, smoothed and quantized; return its dequantized value, computed in front of a reader."""
        values = self.weights.array(name)
        shape = values.shape
        if is_convolution:  # [output, inputs, ...] as a matrix [input, output]
            values = values.reshape(shape[0], -1).T
        values = values if factors is None else values * factors[:, None]
        scales = low_bits.weight_scales(values, self.kind)
        codes = low_bits.codes(values, low_bits.spread(scales, self.kind), self.kind)
        if is_convolution:
            codes = codes.T.reshape(shape)
        stored = [self._store(f"{name}_{CODES[self.kind].lower()}", codes), self._store(f"{name}_scale", scales)]
        axis = 0 if is_convolution else 1
        attributes = {"int8": {"axis": axis}, "fp8": {}, "int4": {"axis": 0, "block_size": BLOCK}}[self.kind]
        return self._node(reader, "DequantizeLinear", stored, f"{name}_dequantized", **attributes)

    def _folded(self, source: ir.Value, group: Group, factors: np.ndarray) -> bool:
        """Fold the smoothing factors of the group's input into the normalization before it, and return True.

        Returns False, and changes nothing, where nodes outside the group read the activation, or where the node that
        produces the activation does not multiply by a value per channel.
        """
        producer = source.producer()
        if producer is None or not _is_alone(source, group):
            return False
        names = surgery.input_names(producer)
        places: Sequence[int] = _SCALED_BY_CHANNEL.get(producer.op_type, ())
        if producer.op_type == "Mul":  # the last node of a normalization that is written in small nodes
            places = [i for i, name in enumerate(names) if self.weights.shape(name) == factors.shape][:1]
        places = [place for place in places if place < len(names) and names[place]]
        if not places or any(self.weights.shape(names[place]) != factors.shape for place in places):
            return False
        for place in places:
            smoothed = self._store(f"{names[place]}_smoothed", self.weights.array(names[place]) / factors)
            producer.replace_input_with(place, smoothed)
        return True

    def _node(
        self, reader: ir.Node, operator: str, inputs: Sequence[ir.Value], result: str, **attributes: int
    ) -> ir.Value:
        name = self.names.free(result)
        node = surgery.node(operator, inputs, name, name, **attributes)
        self.graph.insert_before(reader, node)
        return node.outputs[0]

    def _store(self, name: str, values: np.ndarray) -> ir.Value:
        return surgery.store(self.graph, self.names.free(name), values)


def _is_quantized(node: ir.Node) -> bool:
    producer = None if node.inputs[0] is None else node.inputs[0].producer()
    return producer is not None and producer.op_type == "DequantizeLinear"


def _is_alone(source: ir.Value, group: Group) -> bool:
    """Whether only the MatMuls of the group read the group's input."""
    readers = [surgery.output_names(use.node)[0] for use in source.uses()]
    return not source.is_graph_output() and len(set(readers)) == len(readers) and set(readers) <= set(group.results)


def _describe(value: ir.Value, like: ir.Value, dtype: ir.DataType) -> None:
    """Give a new value the shape of the value `like`, if the model states that shape."""
    import onnx_ir as ir

    if like.type is not None:
        value.type, value.shape = ir.TensorType(dtype), like.shape
