"""Layer inputs: the activations that a graph multiplies by stored weights, and a scale for each of their rows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.kit.onnx import opsets, surgery

if TYPE_CHECKING:
    import onnx_ir as ir

_NORMALIZING = frozenset({
    "EmbedLayerNormalization", "LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization",
    "SkipLayerNormalization", "SkipSimplifiedLayerNormalization",
})  # fmt: skip
_AVERAGING = frozenset({"Attention", "GroupQueryAttention", "MatMul", "MultiHeadAttention", "Sigmoid", "Tanh"})
_BOUNDED = frozenset({"HardSigmoid", "Sigmoid", "Softmax", "Softsign", "Tanh"})
"""Operators whose values lie between -1 and 1."""
_LEAST = {"BiasGelu": -0.1701, "FastGelu": -0.1701, "Gelu": -0.1701, "QuickGelu": -0.1701, "Relu": 0.0}
"""Operators with a least value, and a number that is not above it.

Gelu is least at -0.75, where it is -0.16997; FastGelu's least value is -0.17004, QuickGelu's -0.1636.
"""
_REARRANGING = frozenset({"Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"})
_LEAST_DIVISOR = 1e-30
"""The divisor of a row whose values are all 0, because the row cannot be divided by 0."""
_AXIS, _FLOOR = "even_rows_axis", "even_rows_least"
"""Names of two stored tensors: one has the axis along which a row's largest value is taken, one the smallest divisor.
"""
_AXES_AS_INPUT = 18
"""The opset since which ReduceMax takes its axes as an input instead of an attribute."""


@dataclass(frozen=True)
class LayerInput:
    """An activation, and the nodes that each multiply the activation by a stored weight.

    `operator` is the kind of the operator that computes the activation; nodes that only rearrange numbers are passed
    over. For an input of the graph it is None.
    """

    value: ir.Value
    nodes: tuple[ir.Node, ...]
    operator: str | None

    @property
    def name(self) -> str:
        """The name of the activation."""
        return self.value.name or ""

    @property
    def normalized(self) -> bool:
        """Whether a normalization computes the activation."""
        return self.operator in _NORMALIZING

    @property
    def averaged(self) -> bool:
        """Whether an operator without outliers computes it, such as attention, which averages, or Tanh."""
        return self.operator in _AVERAGING

    @property
    def bounded(self) -> bool:
        """Whether all values lie between -1 and 1."""
        return self.operator in _BOUNDED

    @property
    def least(self) -> float | None:
        """A bound below which no value lies; None where the operator has no such bound."""
        return None if self.operator is None else _LEAST.get(self.operator)

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
    return [LayerInput(value, tuple(nodes), _operator(value)) for value, nodes in layers.items()]


def _operator(value: ir.Value) -> str | None:
    """Return the kind of the operator that computed a value; nodes that only rearrange numbers are passed over."""
    producer = value.producer()
    while producer is not None and producer.op_type in _REARRANGING:
        source = producer.inputs[0]
        producer = None if source is None else source.producer()
    return None if producer is None else producer.op_type


def scale_rows(model: ir.Model, inputs: Sequence[LayerInput]) -> None:
    """Give every row of the activations in `inputs` a scale of its own; `model` is changed.

    The layers that `inputs` names must all be MatMul nodes.

    Each row of an activation is divided by the row's largest absolute value. The largest absolute value of every
    divided row is 1, so the single scale of the int8 tensor suits every row as well as a scale per row would.

    No value of some activations is below a limit, -0.17 for Gelu. Their rows are divided by the largest value, or by
    the size of that limit if it is greater. The divided values then are within -1 and 1, too, and the absolute values
    of a wide activation are not computed.
    """
    import numpy as np

    if not inputs:
        return
    floors: dict[float, ir.Value] = {}
    axes: list[ir.Value] = []
    attributes = {"axes": [-1]}
    if opsets.under_both_names(model.opset_imports)[""] >= _AXES_AS_INPUT:
        axes, attributes = [surgery.store(model.graph, _AXIS, np.array([-1], np.int64))], {}
    for each in inputs:
        name = each.name
        signed = each.least is None
        least = _LEAST_DIVISOR if each.least is None else max(_LEAST_DIVISOR, -each.least)
        if least not in floors:
            own = _FLOOR if signed else f"{_FLOOR}_{least:g}"
            floors[least] = surgery.store(model.graph, own, np.array([least], np.float32))
        sizes = [surgery.node("Abs", [each.value], f"{name}_sizes", f"{name}_Abs")] if signed else []
        values = sizes[0].outputs[0] if sizes else each.value
        largest = surgery.node(
            "ReduceMax", [values, *axes], f"{name}_largest", f"{name}_ReduceMax", keepdims=1, **attributes
        )
        reach = surgery.node("Max", [*largest.outputs, floors[least]], f"{name}_reach", f"{name}_Max")
        even = surgery.node("Div", [each.value, *reach.outputs], f"{name}_even", f"{name}_Div")
        each.exchange(*sizes, largest, reach, even)
        for node in each.nodes:
            product = node.outputs[0]
            scaled = surgery.node("Mul", [product, *reach.outputs], "", f"{product.name}_Mul")
            surgery.follow(product, f"{product.name}_even", scaled)
