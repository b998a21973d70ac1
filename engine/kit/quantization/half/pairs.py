"""Pairs: a graph without its Q/DQ pairs on activations, to measure the error of half precision alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.kit.onnx import surgery

if TYPE_CHECKING:
    import onnx_ir as ir

_QUANTIZE, _DEQUANTIZE = "QuantizeLinear", "DequantizeLinear"


def bypassed(model: ir.Model) -> ir.Model:
    """Return a copy of the model in which an Identity replaces every QuantizeLinear and its DequantizeLinear.

    A tiny error of fp16 can make a Q/DQ pair round a number up instead of down, which changes the number by the whole
    distance between two int8 numbers. Behind a Q/DQ pair, the error of fp16 cannot be told from the error of int8. In
    the copy, quantized weights stay quantized. The nodes of the copy keep their names.
    """
    copy = model.clone()
    graph = copy.graph
    for node in list(graph):
        source = node.inputs[0] if node.inputs else None
        quantizer = None if source is None else source.producer()
        if node.op_type == _DEQUANTIZE and quantizer is not None and quantizer.op_type == _QUANTIZE:
            name, (output,) = node.name or "", surgery.output_names(node)
            surgery.replace(node, [surgery.node("Identity", quantizer.inputs[:1], output, name)])
    unread = [node for node in graph if node.op_type == _QUANTIZE and surgery.is_unread(node.outputs[0])]
    graph.remove(unread, safe=True)
    surgery.drop_unread(graph.initializers.values())
    return copy
