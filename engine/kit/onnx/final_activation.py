"""Endings: the activation in which an output of a graph ends, so that nobody applies it a second time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from engine.kit.onnx import onnx_files, opsets

if TYPE_CHECKING:
    import onnx

Ending = Literal["softmax", "sigmoid", "log_softmax", "argmax"]

_PASS_ON = frozenset(
    {"Cast", "DequantizeLinear", "Dropout", "Flatten", "Identity", "QuantizeLinear", "Reshape", "Squeeze", "Unsqueeze"}
)
"""Operators that change a tensor's shape or type but not its values."""
_OPERATORS: Mapping[str, Ending] = {
    "Softmax": "softmax",
    "Hardmax": "softmax",
    "LogSoftmax": "log_softmax",
    "Sigmoid": "sigmoid",
    "HardSigmoid": "sigmoid",
    "ArgMax": "argmax",
}
_LAST_AXIS = 13
"""From this opset on, Softmax works along the last axis by default; before, along axis 1."""


def of(model: onnx.ModelProto, output: str, *, axes: int) -> Ending | None:
    """Return the activation in which an output with so many axes ends; None for logits and other plain numbers.

    A softmax counts only where it works along the last axis. A softmax that an exporter wrote in its parts counts, too:
    the exponentials divided by their sum, and the logarithm of these shares.
    """
    if model.functions:
        from onnx import inliner

        model = inliner.inline_local_functions(model)
    return _Walk(model, axes).of(output)


class _Walk:
    def __init__(self, model: onnx.ModelProto, axes: int) -> None:
        self.producers = onnx_files.producers(model.graph)
        self.last = axes - 1
        self.default = -1 if opsets.version(model) >= _LAST_AXIS else 1

    def of(self, name: str) -> Ending | None:
        """Return the activation behind which a tensor stands."""
        node, moved = self.origin(name)
        if node is None:
            return None
        kind = node.op_type
        if kind in {"Hardmax", "LogSoftmax", "Softmax"} and not moved:
            stated = [attribute.i for attribute in node.attribute if attribute.name == "axis"]
            if (stated[0] if stated else self.default) not in {-1, self.last}:
                return None
        if kind in _OPERATORS:
            return _OPERATORS[kind]
        if kind == "Concat":  # a share and the rest of it, of a classifier of two classes
            ends = {self.of(each) for each in node.input}
            return "sigmoid" if ends == {"sigmoid"} else None
        return self.composed(node)

    def composed(self, node: onnx.NodeProto) -> Ending | None:
        """Return the activation that a node computes together with the nodes before it."""
        kind = node.op_type
        if kind in {"Exp", "Log"}:
            inner = self.of(node.input[0])
            steps: tuple[Ending, Ending] = ("log_softmax", "softmax") if kind == "Exp" else ("softmax", "log_softmax")
            return steps[1] if inner == steps[0] else None
        if kind not in {"Div", "Sub"}:
            return None
        first, second = (self.origin(each)[0] for each in node.input)
        if kind == "Div":
            exponential = first is not None and first.op_type == "Exp"
            return "softmax" if exponential and self.sums_exponentials(node.input[1]) else None
        if second is not None and (
            second.op_type == "ReduceLogSumExp" or (second.op_type == "Log" and self.sums_exponentials(second.input[0]))
        ):
            return "log_softmax"
        constant = first is None or first.op_type == "Constant"  # less a share
        return "sigmoid" if constant and self.of(node.input[1]) == "sigmoid" else None

    def sums_exponentials(self, name: str) -> bool:
        """Tell whether a tensor is the sum of exponentials."""
        node = self.origin(name)[0]
        inner = self.origin(node.input[0])[0] if node is not None and node.op_type == "ReduceSum" else None
        return inner is not None and inner.op_type == "Exp"

    def origin(self, name: str) -> tuple[onnx.NodeProto | None, bool]:
        """Return the node that computes a tensor's values, and whether the values were given another shape since."""
        node, moved = self.producers.get(name), False
        while node is not None and node.op_type in _PASS_ON:
            moved = moved or node.op_type in {"Flatten", "Reshape", "Squeeze", "Unsqueeze"}
            node = self.producers.get(node.input[0])
        return node, moved
