"""Operators: MatMulNBits and GatherBlockQuantized in place of the nodes that read a weight."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.kit.onnx import mapped_weights, topology
from engine.kit.quantization.weight_only import blocks, layers
from engine.runtimes.onnxruntime import few_bits
from engine.runtimes.preparation import CONTRIBUTED

if TYPE_CHECKING:
    import onnx

LOOKUP = "GatherBlockQuantized"
"""ONNX Runtime's operator that reads rows of a table in blocks."""


def replace(model: onnx.ModelProto, bits: int) -> dict[str, int]:
    """Store the weights of linear layers, and large tables, with `bits` bits; return how many nodes were replaced.

    `model` is changed. A weight that several nodes read, such as a table of words that is also the weight of the output
    layer, is stored once.
    """
    graph = model.graph
    weights, rows = layers.weights(graph), layers.rows(graph)
    tensors, names = topology.initializers(graph), topology.TensorNames(model)
    stored = {
        weight: _store(graph, tensors[weight.tensor], bits, outputs_first=weight.outputs_first, names=names)
        for weight in dict.fromkeys([*weights.values(), *rows.values()])
    }
    counts: Counter[str] = Counter()
    nodes: list[onnx.NodeProto] = []
    for node in graph.node:
        if node.op_type == "MatMul" and node.input[1] in weights:
            nodes.append(_product(node, stored[weights[node.input[1]]]))
        elif layers.looks_up(node) and node.input[0] in rows:
            nodes += _lookup(node, stored[rows[node.input[0]]], names)
        else:
            nodes.append(node)
            continue
        counts[node.op_type] += 1
    del graph.node[:]
    graph.node.extend(nodes)
    _drop_unread(model)
    if counts and CONTRIBUTED not in {entry.domain for entry in model.opset_import}:
        model.opset_import.add(domain=CONTRIBUTED, version=1)
    return dict(sorted(counts.items()))


@dataclass(frozen=True)
class _Stored:
    """A weight in blocks: the names of its three tensors, its numbers of inputs and outputs, and its bits."""

    tensors: tuple[str, str, str]
    inputs: int
    outputs: int
    bits: int
    shape: str
    """The name of the tensor with the shape [outputs, bytes of a row], in which a look-up reads the weight."""


def _store(
    graph: onnx.GraphProto, tensor: onnx.TensorProto, bits: int, *, outputs_first: bool, names: topology.TensorNames
) -> _Stored:
    """Add the tensors of a weight in blocks to the graph."""
    import numpy as np

    values = mapped_weights.array(tensor)
    packed = blocks.pack(values, bits, outputs_first=outputs_first)
    outputs, inputs = values.shape if outputs_first else values.shape[::-1]
    shape = np.array([outputs, -1], np.int64)
    parts = (packed.codes, packed.scales, packed.zero_points, shape)
    endings = (f"int{bits}", "scales", "zero_points", "shape")
    added = [names.free(f"{tensor.name}_{ending}") for ending in endings]
    graph.initializer.extend(mapped_weights.tensor_of(part, name) for part, name in zip(parts, added, strict=True))
    return _Stored((added[0], added[1], added[2]), inputs, outputs, bits, added[3])


def _product(node: onnx.NodeProto, weight: _Stored) -> onnx.NodeProto:
    """Return the MatMulNBits that replaces a MatMul."""
    from onnx import helper

    return helper.make_node(
        few_bits.OPERATOR,
        [node.input[0], *weight.tensors],
        list(node.output),
        node.name,
        domain=CONTRIBUTED,
        K=weight.inputs,
        N=weight.outputs,
        bits=weight.bits,
        block_size=blocks.BLOCK,
        accuracy_level=few_bits.BY_INTEGERS,
    )


def _lookup(node: onnx.NodeProto, table: _Stored, names: topology.TensorNames) -> list[onnx.NodeProto]:
    """Return the nodes that replace a Gather: MatMulNBits reads the same tensor with an axis more."""
    from onnx import helper

    codes, scales, zero_points = table.tensors
    flat = names.free(f"{codes}_flat")
    return [
        helper.make_node("Reshape", [codes, table.shape], [flat], f"{node.name}_flat"),
        helper.make_node(
            LOOKUP,
            [flat, node.input[1], scales, zero_points],
            list(node.output),
            node.name,
            domain=CONTRIBUTED,
            bits=table.bits,
            block_size=blocks.BLOCK,
            gather_axis=0,
            quantize_axis=1,
        ),
    ]


def _drop_unread(model: onnx.ModelProto) -> None:
    """Remove the Transposes and the stored tensors that no node reads any more."""
    read = topology.consumed(model)
    topology.remove(model.graph.node, lambda node: node.op_type == "Transpose" and node.output[0] not in read)
    topology.drop_unread(model)
