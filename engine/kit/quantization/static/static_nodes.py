"""Static nodes: chosen convolutions and products read and give 8-bit integers, in the form that ONNX Runtime fuses."""

# ONNX Runtime computes a Conv in int8 where its input, its weights and its bias come from DequantizeLinear and its
# output goes to QuantizeLinear only. A Gemm needs no quantized output, and a MatMul, which has no bias, neither.

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.kit.onnx import surgery
from engine.kit.onnx.surgery import TensorNames
from engine.kit.quantization.static.layers import StaticLayer
from engine.kit.quantization.static.ranges import ByteRange

if TYPE_CHECKING:
    import numpy as np
    import onnx_ir as ir

OLDEST_OPSET = 13
"""The first opset in which DequantizeLinear takes a scale per channel."""
_LARGEST = {False: 127, True: 63}
"""The largest weight, by whether weights are limited to 7 bits."""
_LARGEST_BIAS = 1 << 30
"""The largest integer of a bias; the sum that it is added to must fit into 32 bits, too."""


def insert(
    model: ir.Model, chosen: Collection[StaticLayer], ranges: Mapping[str, ByteRange], *, reduce_range: bool = False
) -> None:
    """Quantize the chosen layers; `model` is changed, and weights in floating point that no node reads are removed.

    `ranges` has a range for the source of each layer, and for the output of each convolution. Every reader of such a
    tensor reads it from the same integers, a residual addition among them, which ONNX Runtime then adds in integers.
    Weights have a scale per output channel. `reduce_range` limits weights to 7 bits.
    """
    insertion = _Insertion(model.graph, TensorNames(model), ranges, _LARGEST[reduce_range])
    nodes = {surgery.output_names(node)[0]: node for node in model.graph if node.outputs}
    values = surgery.values(model.graph)
    outputs = {layer.output for layer in chosen if layer.is_convolution}
    for layer in chosen:
        insertion.weights(nodes[layer.result], layer)
    for name in sorted({layer.source for layer in chosen} - outputs):
        insertion.input(values[name], [nodes[layer.result] for layer in chosen if layer.source == name])
    for name in sorted(outputs):
        insertion.output(values[name])
    surgery.drop_unread(model.graph.initializers.values())


@dataclass
class _Insertion:
    """The graph while nodes are inserted; `largest` is the largest integer of a weight."""

    graph: ir.Graph
    names: TensorNames
    ranges: Mapping[str, ByteRange]
    largest: int

    def input(self, value: ir.Value, readers: Collection[ir.Node]) -> None:
        """Quantize a tensor for all of its readers; one that a user gives or gets, for some `readers` alone."""
        producer = value.producer()
        if producer is not None and not value.is_graph_output():
            self.output(value)
            return
        quantize, dequantize = self._pair(value, value.name or "")
        if producer is None:
            self.graph.insert_before(self.graph[0], [quantize, dequantize])
        else:
            self.graph.insert_after(producer, [quantize, dequantize])
        for node in readers:
            node.replace_input_with(0, dequantize.outputs[0])

    def output(self, value: ir.Value) -> None:
        """Quantize a tensor for all of its readers, and for the user where it is an output of the model."""
        import onnx_ir as ir

        name = value.name or ""
        quantize, dequantize = self._pair(value, name)
        codes = quantize.outputs[0]
        surgery.follow(value, self.names.free(f"{name}_float"), quantize)
        surgery.follow(codes, self.names.free(f"{name}_quantized"), dequantize)
        codes.type = ir.TensorType(ir.DataType.UINT8)

    def weights(self, node: ir.Node, layer: StaticLayer) -> None:
        """Let a layer read its weights from integers with a scale per output channel, and so its bias."""
        import numpy as np

        weight, bias = node.inputs[1], node.inputs[2] if layer.has_bias else None
        if weight is None:
            raise ValueError(f"{layer.result} has no weights")
        values = surgery.numbers(weight).astype(np.float32)
        axis = layer.channels
        others = tuple(each for each in range(values.ndim) if each != axis)
        scales = np.abs(values).max(axis=others) / np.float32(self.largest)
        step = self.ranges[layer.source].scale
        shifts = None if bias is None else surgery.numbers(bias).astype(np.float32)
        if shifts is not None:  # a bias that is large beside its weights needs larger steps
            scales = np.maximum(scales, np.abs(shifts) / (step * np.float32(_LARGEST_BIAS)))
        scales = np.where(scales > 0, scales, np.float32(1)).astype(np.float32)
        spread = scales.reshape([-1 if each == axis else 1 for each in range(values.ndim)])
        codes = np.clip(np.rint(values / spread), -self.largest, self.largest).astype(np.int8)
        node.replace_input_with(1, self._stored(node, f"{layer.result}_weight", codes, scales, axis))
        if shifts is not None:
            steps = (step * scales).astype(np.float32)
            whole = np.rint(shifts.astype(np.float64) / steps).astype(np.int32)
            node.replace_input_with(2, self._stored(node, f"{layer.result}_bias", whole, steps, 0))

    def _stored(self, reader: ir.Node, name: str, codes: np.ndarray, scales: np.ndarray, axis: int) -> ir.Value:
        """Store integers and their scales, and return the dequantized value, computed in front of a reader."""
        import numpy as np

        zeros = np.zeros(len(scales), codes.dtype)
        parts: dict[str, np.ndarray] = {"quantized": codes, "scale": scales, "zero": zeros}
        inputs = [surgery.store(self.graph, self.names.free(f"{name}_{part}"), each) for part, each in parts.items()]
        result = self.names.free(f"{name}_dequantized")
        node = surgery.node("DequantizeLinear", inputs, result, result, axis=axis)
        self.graph.insert_before(reader, node)
        return node.outputs[0]

    def _pair(self, value: ir.Value, name: str) -> tuple[ir.Node, ir.Node]:
        import numpy as np
        import onnx_ir as ir

        chosen = self.ranges[name]
        scale = surgery.store(self.graph, self.names.free(f"{name}_scale"), np.array(chosen.scale))
        zero = surgery.store(self.graph, self.names.free(f"{name}_zero"), np.array(chosen.zero))
        codes, back = self.names.free(f"{name}_codes"), self.names.free(f"{name}_dequantized")
        quantize = surgery.node("QuantizeLinear", [value, scale, zero], codes, codes)
        dequantize = surgery.node("DequantizeLinear", [quantize.outputs[0], scale, zero], back, back)
        for each, dtype in ((quantize, ir.DataType.UINT8), (dequantize, ir.DataType.FLOAT)):
            each.outputs[0].type, each.outputs[0].shape = ir.TensorType(dtype), value.shape
        return quantize, dequantize
