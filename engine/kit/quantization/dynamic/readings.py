"""Readings: the tensors that a graph multiplies by stored weights, and nodes put between the two."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx

_NORMALIZE = frozenset({
    "EmbedLayerNormalization", "LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization",
    "SkipLayerNormalization", "SkipSimplifiedLayerNormalization",
})  # fmt: skip
_MEANS = frozenset({"Attention", "GroupQueryAttention", "MatMul", "MultiHeadAttention", "Sigmoid", "Tanh"})
_ARRANGE = frozenset({"Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"})


@dataclass(frozen=True)
class Reading:
    """A tensor, and the nodes that multiply it by a weight each: their names, operators, weights and results.

    `normal`: whether a normalization gives the tensor; `mild`: whether what gives it lets nothing stand out, as
    attention does, which takes means.
    """

    source: str
    nodes: tuple[str, ...]
    kinds: tuple[str, ...]
    weights: tuple[str, ...]
    results: tuple[str, ...]
    normal: bool
    mild: bool


def find(model: onnx.ModelProto, fit: Collection[str]) -> list[Reading]:
    """Return what MatMul and Attention read that are among the nodes called `fit`, in the order of the graph."""
    makers = {name: node for node in model.graph.node for name in node.output}
    found: dict[str, list[onnx.NodeProto]] = {}
    for node in model.graph.node:
        if node.name in fit and node.op_type in {"Attention", "MatMul"}:
            found.setdefault(node.input[0], []).append(node)
    return [
        Reading(
            source,
            tuple(node.name for node in nodes),
            tuple(node.op_type for node in nodes),
            tuple(node.input[1] for node in nodes),
            tuple(node.output[0] for node in nodes),
            _comes_from(_NORMALIZE, source, makers),
            _comes_from(_MEANS, source, makers),
        )
        for source, nodes in found.items()
    ]


def insert(
    model: onnx.ModelProto,
    readings: Sequence[Reading],
    before: Mapping[str, Sequence[onnx.NodeProto]],
    after: Mapping[str, onnx.NodeProto],
) -> None:
    """Put nodes in: `before` the first node that reads a tensor, by the tensor, and `after` a node, by its result.

    The last of those before gives what is read instead; what stands after takes what the node gives from now on.
    """
    by_node = {name: reading for reading in readings for name in reading.nodes}
    made: list[onnx.NodeProto] = []
    for node in model.graph.node:
        reading = by_node.get(node.name)
        if reading is None:
            made.append(node)
            continue
        made += before[reading.source] if node.name == reading.nodes[0] else ()
        node.input[0] = before[reading.source][-1].output[0]
        made.append(node)
        if then := after.get(node.output[0]):
            node.output[0] = then.input[0]
            made.append(then)
    nodes = [type(node).FromString(node.SerializeToString()) for node in made]
    del model.graph.node[:]
    model.graph.node.extend(nodes)


def _comes_from(operators: Collection[str], name: str, makers: Mapping[str, onnx.NodeProto]) -> bool:
    maker = makers.get(name)
    while maker is not None and maker.op_type in _ARRANGE:
        maker = makers.get(maker.input[0])
    return maker is not None and maker.op_type in operators
