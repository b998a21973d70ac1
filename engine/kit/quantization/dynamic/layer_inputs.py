"""Layer inputs: the activations that a graph multiplies by stored weights."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.kit.onnx import surgery

if TYPE_CHECKING:
    import onnx_ir as ir

_NORMALIZING = frozenset({
    "EmbedLayerNormalization", "LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization",
    "SkipLayerNormalization", "SkipSimplifiedLayerNormalization",
})  # fmt: skip
_AVERAGING = frozenset({"Attention", "GroupQueryAttention", "MatMul", "MultiHeadAttention", "Sigmoid", "Tanh"})
_LEAST_VALUES = {"BiasGelu": -0.17, "FastGelu": -0.17, "Gelu": -0.17, "QuickGelu": -0.17, "Relu": 0.0}
"""Activation functions, and a lower limit of their values.

Gelu is least at -0.75, where it is -0.16997; QuickGelu's least value is -0.1636.
"""
_REARRANGING = frozenset({"Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"})


@dataclass(frozen=True)
class LayerInput:
    """An activation, and the nodes that each multiply the activation by a stored weight.

    `normalized` tells whether a normalization produces the activation. `averaged` tells whether an operator without
    outliers produces the activation, such as attention, which averages, or Tanh, which is bounded.
    """

    value: ir.Value
    nodes: tuple[ir.Node, ...]
    normalized: bool
    averaged: bool
    least: float | None = None
    """A lower limit of the activation's values, which the activation function has; None for no such limit."""

    @property
    def name(self) -> str:
        """The name of the activation."""
        return self.value.name or ""

    @property
    def weights(self) -> tuple[ir.Value, ...]:
        """The stored weights by which the nodes multiply the activation."""
        return tuple(weight for node in self.nodes if (weight := node.inputs[1]) is not None)

    def exchange(self, *nodes: ir.Node) -> None:
        """Insert new nodes in front of the first node; all nodes read the output of the last new node instead."""
        surgery.graph_of(self.nodes[0]).insert_before(self.nodes[0], nodes)
        for node in self.nodes:
            node.replace_input_with(0, nodes[-1].outputs[0])


def find(model: ir.Model, fit: Collection[str]) -> list[LayerInput]:
    """Return the inputs of the MatMul and Attention nodes named in `fit`, in the order of the graph."""
    layers: dict[ir.Value, list[ir.Node]] = {}
    for node in model.graph:
        value = node.inputs[0] if node.inputs else None
        if value is not None and node.name in fit and node.op_type in {"Attention", "MatMul"}:
            layers.setdefault(value, []).append(node)
    return [
        LayerInput(
            value,
            tuple(nodes),
            normalized=_comes_from(_NORMALIZING, value),
            averaged=_comes_from(_AVERAGING, value),
            least=_LEAST_VALUES.get(_operator(value)),
        )
        for value, nodes in layers.items()
    ]


def _comes_from(operators: Collection[str], value: ir.Value) -> bool:
    """Whether one of the `operators` computed a value; nodes that only rearrange numbers are passed over."""
    return _operator(value) in operators


def _operator(value: ir.Value) -> str:
    """Return the operator that computed a value, empty for none; nodes that only rearrange numbers are passed over."""
    producer = value.producer()
    while producer is not None and producer.op_type in _REARRANGING:
        source = producer.inputs[0]
        producer = None if source is None else source.producer()
    return "" if producer is None else producer.op_type
