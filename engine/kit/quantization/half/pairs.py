"""Pairs: a graph without its Q/DQ pairs on activations, to measure the error of half precision alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.kit.onnx import onnx_files, topology

if TYPE_CHECKING:
    import onnx

_QUANTIZE, _DEQUANTIZE = "QuantizeLinear", "DequantizeLinear"


def bypassed(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a copy of the model in which an Identity replaces every QuantizeLinear and its DequantizeLinear.

    A tiny error of fp16 can make a Q/DQ pair round a number up instead of down, which changes the number by the whole
    distance between two int8 numbers. Behind a Q/DQ pair, the error of fp16 cannot be told from the error of int8. In
    the copy, quantized weights stay quantized. The nodes of the copy keep their names.
    """
    from onnx import helper

    copy = onnx_files.copied(model)
    graph = copy.graph
    sources = {node.output[0]: node.input[0] for node in graph.node if node.op_type == _QUANTIZE}
    for node in graph.node:
        if node.op_type == _DEQUANTIZE and node.input[0] in sources:
            node.CopyFrom(helper.make_node("Identity", [sources[node.input[0]]], list(node.output), node.name))
    read = topology.consumed(copy)
    topology.remove(graph.node, lambda node: node.op_type == _QUANTIZE and node.output[0] not in read)
    topology.drop_unread(copy)
    return copy
