"""Topology: the stored tensors and the producers of a message, for code beside tools that take messages."""

# Passes work on graphs of values instead (`ir_models`), which know their producers and their uses.

from __future__ import annotations

from collections.abc import Container, MutableSequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import onnx


def initializers(graph: onnx.GraphProto) -> dict[str, onnx.TensorProto]:
    """Return the stored tensors of a graph by name."""
    return {tensor.name: tensor for tensor in graph.initializer}


def producers(graph: onnx.GraphProto) -> dict[str, onnx.NodeProto]:
    """Return the node of a graph that produces each tensor."""
    return {name: node for node in graph.node for name in node.output}


def remove_named(values: MutableSequence[Any], names: Container[str]) -> None:
    """Remove the values of a repeated field that have one of the names; all others stay as they are."""
    for index in reversed(range(len(values))):
        if values[index].name in names:
            del values[index]
