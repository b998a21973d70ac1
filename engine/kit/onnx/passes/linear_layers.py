"""Linear layers for ONNX Runtime's quantizer: Gemm becomes MatMul and Add, and each weight is transposed once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.kit.onnx import mapped_weights, onnx_files, topology
from engine.kit.onnx.topology import TensorNames

if TYPE_CHECKING:
    import onnx


@dataclass
class _Weight:
    """A stored tensor, the graph that stores the tensor, and the name of its transposed copy, if any."""

    tensor: onnx.TensorProto
    graph: onnx.GraphProto
    transposed: str = ""


def split(model: onnx.ModelProto) -> None:
    """Turn every plain Gemm into MatMul and Add; a weight that a Gemm reads transposed is stored transposed.

    ONNX Runtime's quantizer also splits a Gemm, but transposes the weight in place, once for every Gemm that reads the
    weight; other readers of the weight then get the wrong values. The function stores one transposed copy of a weight
    for all Gemms that read the weight transposed. A weight that no node reads any more is removed. A Gemm that
    transposes a computed tensor stays a Gemm.
    """
    _forget_shapes_of_weights(model)
    weights = _split(model.graph, {}, TensorNames(model))
    used = topology.consumed(model)
    for weight in weights:
        if weight.transposed and weight.tensor.name not in used:
            _drop(weight)


def _split(graph: onnx.GraphProto, around: Mapping[str, _Weight], names: TensorNames) -> list[_Weight]:
    """Split the Gemms of a graph and of its nodes' bodies; return the weights of the graph and of the bodies.

    `around` maps names to weights of the enclosing graphs, because a Gemm in a body may read weights of the enclosing
    graphs.
    """
    own = [_Weight(tensor, graph) for tensor in graph.initializer]
    visible = {**around, **{weight.tensor.name: weight for weight in own}}
    weights = list(own)
    for index in reversed(range(len(graph.node))):
        node = graph.node[index]
        for attribute in node.attribute:
            bodies = [attribute.g] if attribute.HasField("g") else attribute.graphs
            for body in bodies:
                weights += _split(body, visible, names)
        if _plain_gemm(node) and not (topology.whole_number(node, "transB") and node.input[1] not in visible):
            product, *bias = _parts(node, visible, names)
            for part in bias:
                graph.node.insert(index + 1, part)
            node.CopyFrom(product)
    return weights


def _parts(node: onnx.NodeProto, visible: Mapping[str, _Weight], names: TensorNames) -> list[onnx.NodeProto]:
    """Return the MatMul and, where there is a bias, the Add that replace a plain Gemm."""
    from onnx import helper

    weight = _transposed(visible[node.input[1]], names) if topology.whole_number(node, "transB") else node.input[1]
    bias = node.input[2] if len(node.input) > 2 else ""  # noqa: PLR2004 - input, weight, bias
    if not bias:
        return [helper.make_node("MatMul", [node.input[0], weight], list(node.output), name=node.name)]
    product = names.free(f"{node.output[0]}_MatMul")
    return [
        helper.make_node("MatMul", [node.input[0], weight], [product], name=node.name),
        helper.make_node("Add", [product, bias], list(node.output), name=node.name and f"{node.name}_Add"),
    ]


def _transposed(weight: _Weight, names: TensorNames) -> str:
    """Return the name of the transposed copy of a weight; the first call stores the copy."""
    import numpy as np

    if not weight.transposed:
        weight.transposed = names.free(f"{weight.tensor.name}_transposed")
        values = np.ascontiguousarray(mapped_weights.array(weight.tensor).T)
        weight.graph.initializer.append(mapped_weights.tensor_of(values, weight.transposed))
    return weight.transposed


def _drop(weight: _Weight) -> None:
    name = weight.tensor.name
    for values in (weight.graph.initializer, weight.graph.input):  # old models list weights as inputs too
        topology.remove_named(values, {name})


def _forget_shapes_of_weights(model: onnx.ModelProto) -> None:
    """Remove the shapes of weights from `value_info`, because transposing a weight changes the shape of the weight."""
    for graph in onnx_files.graphs(model.graph):
        topology.remove_named(graph.value_info, topology.initializers(graph))


def _plain_gemm(node: onnx.NodeProto) -> bool:
    """Whether a node is a Gemm that neither scales its factors nor transposes the first of them."""
    scaled = any(attribute.name in {"alpha", "beta"} and attribute.f != 1 for attribute in node.attribute)
    return node.op_type == "Gemm" and not scaled and not topology.whole_number(node, "transA")
