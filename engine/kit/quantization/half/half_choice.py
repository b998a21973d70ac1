"""Half choice: which nodes of a graph compute in half precision, and why each remaining node does not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from engine.kit.onnx import opsets, surgery
from engine.kit.quantization.half import signatures
from engine.kit.quantization.half.ranges import Ranges
from engine.kit.quantization.half.signatures import Kind, Slots
from engine.kit.quantization.matmul_work import MATRIX
from engine.kit.quantization.report import Kept

if TYPE_CHECKING:
    import onnx_ir as ir

LARGEST: Mapping[Kind, float] = {"fp16": 65504.0, "bf16": 3.3895e38}
"""The largest numbers of fp16 (IEEE 754 binary16) and of bf16 (the upper half of IEEE 754 binary32)."""
ROOM = 2.0
"""The factor by which a tensor may be larger on inputs outside the samples than on the samples."""

SUMS = "adds up many numbers or takes exponentials"
SPELLED_OUT = "part of a normalization or softmax that is spelled out"
NO_FORM = "has no form in this precision"
VANISHING = "a constant so small that it would become 0"
BEYOND = "values beyond this precision's range, with room for other samples"
LARGE = "large values: rounding them costs the most"
BETWEEN = "between nodes in fp32"
_LISTED = 20
"""Upper limit of the number of nodes that a report lists for one reason."""
_REDUCING = frozenset({
    "CumSum", "LpNormalization", "MeanVarianceNormalization", "ReduceL1", "ReduceL2", "ReduceLogSum",
    "ReduceLogSumExp", "ReduceMean", "ReduceProd", "ReduceSum", "ReduceSumSquare",
})  # fmt: skip
"""Operators that reduce many numbers to one number."""
ACCUMULATING = _REDUCING | {
    "EmbedLayerNormalization", "Exp", "GroupNorm", "GroupNormalization", "InstanceNormalization",
    "LayerNormalization", "Log", "LogSoftmax", "RMSNormalization", "SimplifiedLayerNormalization",
    "SkipGroupNorm", "SkipLayerNormalization", "SkipSimplifiedLayerNormalization", "Softmax", "Softplus",
}  # fmt: skip
"""Operators with sums or exponentials, which lose precision or overflow in half precision."""
MOVING = frozenset({
    "Concat", "DepthToSpace", "Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Identity", "Reshape",
    "Slice", "SpaceToDepth", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze",
})  # fmt: skip
"""Operators that move numbers without computing, so they round nothing."""

_BY_ELEMENT = frozenset({
    "Abs", "Add", "Cast", "Clip", "Div", "Max", "Min", "Mul", "Neg", "Pow", "Reciprocal", "Sqrt", "Sub",
})  # fmt: skip
_FEEDING = frozenset({"Abs", "Pow", "Sub"})


@dataclass(frozen=True)
class Choice:
    """The names of the nodes in half precision, and the reason why each remaining float32 node stays in float32."""

    low: frozenset[str]
    reasons: Mapping[str, str]


def choose(
    model: ir.Model,
    ranges: Ranges,
    kind: Kind,
    limit: float,
    kept: Mapping[str, str] = MappingProxyType({}),
    *,
    wide_sums: Collection[str] = (),
) -> Choice:
    """Return which nodes of a float32 graph are converted to half precision. Every node of the graph must have a name.

    `kept` has the names of further nodes that stay in float32, with the reasons. `wide_sums` names operators that need
    not stay in float32, because their kernels for half precision sum in float32.

    A node with values above `limit` among its inputs and outputs stays in float32. A matrix product stays in float32
    only where its values are beyond the range of the type, because matrix products gain the most from half precision,
    and because TensorRT-RTX has no float32 matrix products for some GPUs.
    """
    return _Chooser(model, ranges, kind, limit, kept, wide_sums=wide_sums).run()


def largest_limit(kind: Kind) -> float:
    """Return the largest value that a half-precision tensor may have on samples."""
    return LARGEST[kind] / ROOM


def grouped(model: ir.Model, choice: Choice, ranges: Ranges) -> list[Kept]:
    """Return the operators that stay in float32, in a group per reason; nodes with large values are listed by name."""
    groups: list[Kept] = []
    computing = [node for node in model.graph if any(map(ranges.single, surgery.output_names(node)))]
    for reason in dict.fromkeys(choice.reasons[_name(node)] for node in computing if node.name in choice.reasons):
        nodes = [node for node in computing if choice.reasons.get(_name(node)) == reason]
        group = Kept(operators=dict(sorted(Counter(n.op_type for n in nodes).items())), reason=reason)
        if reason in {BEYOND, LARGE}:
            reached = {_name(node): _reached(node, ranges) for node in nodes}
            by_name = {name: _short(most) for name, most in list(reached.items())[:_LISTED]}
            group = replace(group, largest=_short(max(reached.values())), nodes=by_name)
        groups.append(group)
    return groups


class _Chooser:
    """Decides for each node of a graph whether the node computes in half precision.

    `parts` names the nodes of normalizations that are written in small nodes; `small` names the constants that half
    precision would round to zero; `accumulating` names the operators that would sum in half precision.
    """

    def __init__(
        self,
        model: ir.Model,
        ranges: Ranges,
        kind: Kind,
        limit: float,
        kept: Mapping[str, str],
        *,
        wide_sums: Collection[str],
    ) -> None:
        self.accumulating = ACCUMULATING.difference(wide_sums)
        self.kept, self.model, self.ranges, self.kind, self.limit = kept, model, ranges, kind, limit
        self.opsets = opsets.under_both_names(model.opset_imports)
        self.parts = spelled_out(model)
        self.small = self._vanishing()

    def run(self) -> Choice:
        nodes = [node for node in self.model.graph if any(map(self.ranges.single, surgery.names(node)))]
        all_reasons = {_name(node): self.kept.get(_name(node)) or self._reason(node) for node in nodes}
        reasons = {name: reason for name, reason in all_reasons.items() if reason}
        low: set[str] = set()
        halves: set[str] = set()  # tensors that come out in half precision
        for node in nodes:
            if _name(node) in reasons:
                continue
            slots = signatures.of(node, self.opsets, self.kind)
            if self._stays_between(node, halves, reasons):
                reasons[_name(node)] = BETWEEN
                continue
            low.add(_name(node))
            halves.update(name for index, name in enumerate(surgery.output_names(node)) if slots.gives(index))
        return Choice(frozenset(low), {_name(node): reasons[_name(node)] for node in nodes if _name(node) in reasons})

    def _reason(self, node: ir.Node) -> str | None:
        """Return the reason why a node stays in float32; None for a node that may compute in half precision."""
        slots = signatures.of(node, self.opsets, self.kind)
        if not self._convertible(node, slots):
            return NO_FORM
        if node.op_type in self.accumulating:
            return SUMS
        if node.name in self.parts:
            return SPELLED_OUT
        if not self.small.isdisjoint(surgery.input_names(node)):
            return VANISHING
        reached = _reached(node, self.ranges)
        if reached > largest_limit(self.kind):
            return BEYOND
        return LARGE if reached > self.limit and node.op_type not in MATRIX else None

    def _convertible(self, node: ir.Node, slots: Slots) -> bool:
        """Whether any float32 input or output of a node may be in half precision."""
        ends = ((surgery.input_names(node), slots.takes), (surgery.output_names(node), slots.gives))
        return any(
            self.ranges.single(name) and allows(index) for names, allows in ends for index, name in enumerate(names)
        )

    def _stays_between(self, node: ir.Node, halves: set[str], reasons: Mapping[str, str]) -> bool:
        """Whether half precision would only add casts around a node, because neighbouring nodes compute in float32.

        The answer is true for a node that only moves numbers between float32 neighbours, and for a node that reads
        float32 and gives no float32, such as a comparison.
        """
        stored = self.model.graph.initializers
        inputs = [name for name in surgery.input_names(node) if self.ranges.single(name) and name not in stored]
        if not any(map(self.ranges.single, surgery.output_names(node))):
            return bool(inputs) and not halves.issuperset(inputs)
        if node.op_type not in MOVING or not inputs or not halves.isdisjoint(inputs):
            return False
        return any(self._read_as_single(value, reasons) for value in node.outputs)

    def _read_as_single(self, value: ir.Value, reasons: Mapping[str, str]) -> bool:
        """Whether a float32 node or a model output reads a value, directly or through nodes that only move numbers."""
        nodes = [use.node for use in value.uses() if use.node.graph is self.model.graph]
        return value.is_graph_output() or any(
            node.name in reasons
            or (node.op_type in MOVING and any(self._read_as_single(output, reasons) for output in node.outputs))
            for node in nodes
        )

    def _vanishing(self) -> set[str]:
        """Return the names of the nonzero scalar constants that half precision would round to zero."""
        import numpy as np

        vanishing = set()
        stored = {name: value.const_value for name, value in self.model.graph.initializers.items()}
        for node in self.model.graph:
            if node.op_type == "Constant":
                stored[surgery.output_names(node)[0]] = node.attributes.get_tensor("value", None)
        for name, tensor in stored.items():
            if tensor is not None and not len(tensor.shape) and self.ranges.single(name):
                value = float(np.abs(tensor.numpy()))
                if 0 < value <= signatures.SMALLEST[self.kind] / 2:
                    vanishing.add(name)
        return vanishing


def _reached(node: ir.Node, ranges: Ranges) -> float:
    return max((ranges.largest.get(name, 0.0) for name in surgery.names(node)), default=0.0)


def _name(node: ir.Node) -> str:
    return node.name or ""


def _short(value: float) -> float | str:
    """Return a number rounded to three digits; infinity becomes the word "infinite", because JSON has no infinity."""
    return "infinite" if value == float("inf") else float(f"{value:.3g}")


def spelled_out(model: ir.Model) -> frozenset[str]:
    """Return the names of the small nodes that a normalization or softmax is written in, except for the sums.

    In half precision, the small nodes of a normalization lose as much accuracy as a single operator for the
    normalization.

    In front of a sum, the result names the node that computes the summed numbers. Behind a sum, the result names the
    nodes that compute from sums alone, and the first node that combines a sum with numbers that are no sums. For a
    normalization written as Pow, ReduceMean, Add, Sqrt and Div, the result names Pow, Add, Sqrt and Div.
    """
    sums: set[ir.Value] = set()
    parts: set[str] = set()
    for node in model.graph:
        if node.op_type in _REDUCING | {"Exp", "Log"}:
            parts |= _feeding(node)
        if node.op_type in _REDUCING:
            sums.update(node.outputs)
            continue
        free = [value for value in node.inputs if value is not None and not _is_constant(value)]
        if node.op_type in MOVING and free and free[0] in sums:
            sums.update(node.outputs)
        if node.op_type in _BY_ELEMENT and not sums.isdisjoint(free):
            parts.add(node.name or "")
            if sums.issuperset(free):
                sums.update(node.outputs)
    return frozenset(parts)


def _is_constant(value: ir.Value) -> bool:
    producer = value.producer()
    return value.is_initializer() or (producer is not None and producer.op_type == "Constant")


def _feeding(node: ir.Node) -> set[str]:
    """Return the name of the node in front of a sum or an exponential, if the node is a square, Abs, Pow or Sub."""
    source = node.inputs[0]
    producer = None if source is None else source.producer()
    if producer is None:
        return set()
    squares = producer.op_type == "Mul" and producer.inputs[0] is producer.inputs[1]
    return {producer.name or ""} if squares or producer.op_type in _FEEDING else set()
