"""Half choice: which nodes of a graph compute in half precision, and why the others do not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from engine.kit.onnx import opsets, topology
from engine.kit.quantization.half import normalizations, signatures
from engine.kit.quantization.half.matmul_work import MATRIX
from engine.kit.quantization.half.normalizations import ACCUMULATING, MOVING
from engine.kit.quantization.half.ranges import Ranges
from engine.kit.quantization.half.signatures import Kind, Slots
from engine.kit.quantization.report import Kept

if TYPE_CHECKING:
    import onnx

LARGEST: Mapping[Kind, float] = {"fp16": 65504.0, "bf16": 3.3895e38}
"""The largest number of each: IEEE 754 binary16, and the upper half of binary32."""
ROOM = 2.0
"""How much larger than on the samples a tensor may become on other inputs."""
_VANISHES: Mapping[Kind, float] = {"fp16": 2.0**-25, "bf16": 2.0**-134}
"""Half of the least number above 0: what is smaller becomes 0."""

SUMS = "adds up many numbers or takes exponentials"
SPELLED_OUT = "part of a normalization or softmax that is spelled out"
NO_FORM = "has no form in this precision"
VANISHING = "a constant so small that it would become 0"
BEYOND = "values beyond this precision's range, with room for other samples"
LARGE = "large values: rounding them costs the most"
BETWEEN = "between nodes in fp32"
_LISTED = 20


@dataclass(frozen=True)
class Choice:
    """The names of the nodes in half precision, and of each other node that has to do with floats the reason."""

    low: frozenset[str]
    kept: Mapping[str, str]


def choose(model: onnx.ModelProto, ranges: Ranges, kind: Kind, limit: float) -> Choice:
    """Return which nodes of a float32 graph go to half precision.

    Tensors larger than `limit` stay in float32; what multiplies matrices only gives way to the range of the
    precision itself, since it is what half precision is for (and TensorRT-RTX has no float32 products for some GPUs).
    Nodes must have names.
    """
    return _Chooser(model, ranges, kind, limit).run()


def largest_limit(kind: Kind) -> float:
    """Return what a tensor may reach on samples."""
    return LARGEST[kind] / ROOM


def grouped(model: onnx.ModelProto, choice: Choice, ranges: Ranges) -> list[Kept]:
    """Return, for a report, what stayed in float32 by its reason: operators with counts, large ones by name."""
    found: list[Kept] = []
    computing = [node for node in model.graph.node if any(ranges.single(name) for name in node.output)]
    for reason in dict.fromkeys(choice.kept[node.name] for node in computing if node.name in choice.kept):
        nodes = [node for node in computing if choice.kept.get(node.name) == reason]
        group = Kept(operators=dict(sorted(Counter(n.op_type for n in nodes).items())), reason=reason)
        if reason in {BEYOND, LARGE}:
            reached = {node.name: _reached(node, ranges) for node in nodes}
            by_name = {name: _short(most) for name, most in list(reached.items())[:_LISTED]}
            group = replace(group, largest=_short(max(reached.values())), nodes=by_name)
        found.append(group)
    return found


class _Chooser:
    def __init__(self, model: onnx.ModelProto, ranges: Ranges, kind: Kind, limit: float) -> None:
        self.model, self.ranges, self.kind, self.limit = model, ranges, kind, limit
        self.opsets = opsets.versions(model)
        self.parts = normalizations.spelled_out(model)
        self.small = self._vanishing()
        self.weights = {tensor.name for tensor in model.graph.initializer}
        self.outputs = {value.name for value in model.graph.output}
        self.readers = topology.consumers(model.graph.node)

    def run(self) -> Choice:
        nodes = [node for node in self.model.graph.node if self._floats(node)]
        kept = {node.name: reason for node in nodes if (reason := self._reason(node))}
        low: set[str] = set()
        halves: set[str] = set()  # tensors that come out in half precision
        for node in nodes:
            if node.name in kept:
                continue
            slots = signatures.of(node, self.opsets, self.kind)
            if self._stays_between(node, halves, kept):
                kept[node.name] = BETWEEN
                continue
            low.add(node.name)
            halves.update(name for index, name in enumerate(node.output) if slots.gives(index))
        return Choice(frozenset(low), {node.name: kept[node.name] for node in nodes if node.name in kept})

    def _floats(self, node: onnx.NodeProto) -> bool:
        return any(self.ranges.single(name) for name in (*node.input, *node.output))

    def _reason(self, node: onnx.NodeProto) -> str | None:
        slots = signatures.of(node, self.opsets, self.kind)
        if not self._convertible(node, slots):
            return NO_FORM
        if node.op_type in ACCUMULATING:
            return SUMS
        if node.name in self.parts:
            return SPELLED_OUT
        if not self.small.isdisjoint(node.input):
            return VANISHING
        reached = _reached(node, self.ranges)
        if reached > largest_limit(self.kind):
            return BEYOND
        return LARGE if reached > self.limit and node.op_type not in MATRIX else None

    def _convertible(self, node: onnx.NodeProto, slots: Slots) -> bool:
        taken = any(self.ranges.single(name) and slots.takes(index) for index, name in enumerate(node.input))
        return taken or any(self.ranges.single(name) and slots.gives(index) for index, name in enumerate(node.output))

    def _stays_between(self, node: onnx.NodeProto, halves: set[str], kept: Mapping[str, str]) -> bool:
        """Whether casts around a node would only round: it hands numbers on, or looks at some that are float32."""
        given = [name for name in node.input if self.ranges.single(name) and name not in self.weights]
        if not any(self.ranges.single(name) for name in node.output):
            return bool(given) and not halves.issuperset(given)
        if node.op_type not in MOVING or not given or not halves.isdisjoint(given):
            return False
        return any(self._read_as_single(name, kept) for name in node.output)

    def _read_as_single(self, name: str, kept: Mapping[str, str]) -> bool:
        """Whether a tensor, handed on or not, ends where float32 is wanted."""
        return name in self.outputs or any(
            node.name in kept
            or (node.op_type in MOVING and any(self._read_as_single(output, kept) for output in node.output))
            for node in self.readers.get(name, ())
        )

    def _vanishing(self) -> set[str]:
        """Return stored numbers, not tables of them, that are no zeros and would become zero."""
        import numpy as np
        from onnx import numpy_helper

        found = set()
        stored = [(tensor.name, tensor) for tensor in self.model.graph.initializer]
        for node in self.model.graph.node:
            if node.op_type == "Constant":
                stored += [(node.output[0], a.t) for a in node.attribute if a.HasField("t")]
        for name, tensor in stored:
            if not tensor.dims and self.ranges.single(name):
                value = float(np.abs(numpy_helper.to_array(tensor)))
                if 0 < value <= _VANISHES[self.kind]:
                    found.add(name)
        return found


def _reached(node: onnx.NodeProto, ranges: Ranges) -> float:
    return max((ranges.largest.get(name, 0.0) for name in (*node.input, *node.output) if name), default=0.0)


def _short(value: float) -> float | str:
    """Return a number with three digits; JSON knows no infinity."""
    return "infinite" if value == float("inf") else float(f"{value:.3g}")
