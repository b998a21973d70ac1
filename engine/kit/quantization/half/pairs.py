"""Pairs: a graph without the quantizing of what flows through it, to see what other roundings do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.kit.onnx import onnx_files, topology

if TYPE_CHECKING:
    import onnx

_QUANTIZE, _DEQUANTIZE = "QuantizeLinear", "DequantizeLinear"


def bypassed(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a copy in which every QuantizeLinear and the DequantizeLinear behind it hand numbers on as they are.

    A number near the middle between two steps of int8 falls to either side for the least of reasons: behind such pairs
    nobody can tell one rounding from another. Quantized weights stay what they are. Nodes keep their names.
    """
    from onnx import helper

    copy = onnx_files.copied(model)
    graph = copy.graph
    sources = {node.output[0]: node.input[0] for node in graph.node if node.op_type == _QUANTIZE}
    for node in graph.node:
        if node.op_type == _DEQUANTIZE and node.input[0] in sources:
            node.CopyFrom(helper.make_node("Identity", [sources[node.input[0]]], list(node.output), node.name))
    read = {name for node in graph.node for name in node.input} | {value.name for value in graph.output}
    for index in reversed(range(len(graph.node))):
        if graph.node[index].op_type == _QUANTIZE and graph.node[index].output[0] not in read:
            del graph.node[index]
    topology.drop_unread(copy)
    return copy
