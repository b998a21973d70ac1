"""Layer inputs: the activations that a graph multiplies by stored weights, and nodes inserted around the products."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.kit.onnx import topology

if TYPE_CHECKING:
    import onnx

_NORMALIZING = frozenset({
    "EmbedLayerNormalization", "LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization",
    "SkipLayerNormalization", "SkipSimplifiedLayerNormalization",
})  # fmt: skip
_AVERAGING = frozenset({"Attention", "GroupQueryAttention", "MatMul", "MultiHeadAttention", "Sigmoid", "Tanh"})
_REARRANGING = frozenset({"Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"})


@dataclass(frozen=True)
class LayerInput:
    """An activation, and the nodes that each multiply the activation by a stored weight.

    `nodes`, `operators`, `weights` and `products` are the names, operators, weights and outputs of the nodes.
    `normalized` tells whether a normalization produces the activation. `averaged` tells whether an operator without
    outliers produces the activation, such as attention, which averages, or Tanh, which is bounded.
    """

    tensor: str
    nodes: tuple[str, ...]
    operators: tuple[str, ...]
    weights: tuple[str, ...]
    products: tuple[str, ...]
    normalized: bool
    averaged: bool


def find(model: onnx.ModelProto, fit: Collection[str]) -> list[LayerInput]:
    """Return the inputs of the MatMul and Attention nodes named in `fit`, in the order of the graph."""
    producers = topology.producers(model.graph)
    nodes_by_input: dict[str, list[onnx.NodeProto]] = {}
    for node in model.graph.node:
        if node.name in fit and node.op_type in {"Attention", "MatMul"}:
            nodes_by_input.setdefault(node.input[0], []).append(node)
    return [
        LayerInput(
            tensor,
            nodes=tuple(node.name for node in nodes),
            operators=tuple(node.op_type for node in nodes),
            weights=tuple(node.input[1] for node in nodes),
            products=tuple(node.output[0] for node in nodes),
            normalized=_comes_from(_NORMALIZING, tensor, producers),
            averaged=_comes_from(_AVERAGING, tensor, producers),
        )
        for tensor, nodes in nodes_by_input.items()
    ]


def insert(
    model: onnx.ModelProto,
    inputs: Sequence[LayerInput],
    before: Mapping[str, Sequence[onnx.NodeProto]],
    after: Mapping[str, onnx.NodeProto],
) -> None:
    """Insert nodes into the graph of `model`: some before layers, some after layers.

    `before` maps an activation to new nodes, which are inserted in front of the first layer that reads the activation.
    Every layer that reads the activation reads the output of the last new node instead. `after` maps the output of a
    layer to a new node, which is inserted behind the layer. The output of a layer that `after` names gets the name of
    the new node's first input.
    """
    by_node = {name: each for each in inputs for name in each.nodes}
    extended: list[onnx.NodeProto] = []
    for node in model.graph.node:
        layer_input = by_node.get(node.name)
        if layer_input is None:
            extended.append(node)
            continue
        if node.name == layer_input.nodes[0]:
            extended += before[layer_input.tensor]
        node.input[0] = before[layer_input.tensor][-1].output[0]
        extended.append(node)
        follower = after.get(node.output[0])
        if follower is not None:
            node.output[0] = follower.input[0]
            extended.append(follower)
    nodes = [type(node).FromString(node.SerializeToString()) for node in extended]  # `del` frees those of the graph
    del model.graph.node[:]
    model.graph.node.extend(nodes)


def _comes_from(operators: Collection[str], tensor: str, producers: Mapping[str, onnx.NodeProto]) -> bool:
    """Whether one of the `operators` computed a tensor's values; nodes that only rearrange values are passed over."""
    producer = producers.get(tensor)
    while producer is not None and producer.op_type in _REARRANGING:
        producer = producers.get(producer.input[0])
    return producer is not None and producer.op_type in operators
