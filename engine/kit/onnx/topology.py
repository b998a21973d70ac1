"""Topology: which nodes of a graph produce and consume each tensor, and names that are still free."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, MutableSequence
from typing import TYPE_CHECKING, Any, TypeVar

from engine.kit.onnx import onnx_files

if TYPE_CHECKING:
    import onnx

T = TypeVar("T")


def initializers(graph: onnx.GraphProto) -> dict[str, onnx.TensorProto]:
    """Return the stored tensors of a graph by name."""
    return {tensor.name: tensor for tensor in graph.initializer}


def producers(graph: onnx.GraphProto) -> dict[str, onnx.NodeProto]:
    """Return the node of a graph that produces each tensor."""
    return {name: node for node in graph.node for name in node.output}


def consumers(nodes: Iterable[onnx.NodeProto]) -> dict[str, list[onnx.NodeProto]]:
    """Return the nodes that read each tensor; a node that reads a tensor through two inputs is listed twice."""
    readers: dict[str, list[onnx.NodeProto]] = {}
    for node in nodes:
        for name in node.input:
            readers.setdefault(name, []).append(node)
    return readers


def consumed(model: onnx.ModelProto) -> set[str]:
    """Return the tensors that a node of the model reads, or that the main graph or a body gives as an output."""
    read = {name for node in onnx_files.nodes(model) for name in node.input}
    return read | {value.name for graph in onnx_files.graphs(model.graph) for value in graph.output}


def drop_unread(model: onnx.ModelProto) -> None:
    """Remove the stored tensors of the main graph that no node reads and no output gives."""
    read = consumed(model)
    remove(model.graph.initializer, lambda tensor: tensor.name not in read)


def remove(values: MutableSequence[T], is_unwanted: Callable[[T], bool]) -> None:
    """Remove the unwanted values of a repeated field, such as the nodes of a graph; all others stay as they are."""
    for index in reversed(range(len(values))):
        if is_unwanted(values[index]):
            del values[index]


def remove_named(values: MutableSequence[Any], names: Container[str]) -> None:
    """Remove the values of a repeated field that have one of the names."""
    remove(values, lambda value: value.name in names)


def whole_number(node: onnx.NodeProto, name: str) -> int:
    """Return an integer attribute of a node; 0, the default of most attributes, where the node leaves it out."""
    return next((int(attribute.i) for attribute in node.attribute if attribute.name == name), 0)


def name_nodes(model: onnx.ModelProto, *, with_output: bool = False) -> None:
    """Give every node of the main graph a unique name; a node keeps its name if no earlier node has the same name.

    A new name consists of the node's operator and the node's position in the graph. `with_output` adds the name of the
    node's first output to a new name, as in the models of dynamic int8, whose bytes must not change.
    """
    taken: set[str] = set()
    for index, node in enumerate(model.graph.node):
        name = node.name
        if with_output and (not name or name in taken):
            name = f"{node.op_type}_{index}_{node.output[0]}"
        name = name or f"{node.op_type}_{index}"
        while name in taken:
            name += f"_{index}"
        node.name = name
        taken.add(name)


def captured(node: onnx.NodeProto) -> set[str]:
    """Return the names of the tensors that the nodes in a node's bodies read, and of the outputs of the bodies.

    A body may read its own tensors and the tensors of the graph around the node.
    """
    read: set[str] = set()
    for body in onnx_files.bodies(node):
        read.update(name for inner in body.node for name in inner.input)
        read.update(value.name for value in body.output)
    return read


class MessageNames:
    """The names of a model's tensors, including those in bodies of nodes, so that a new tensor gets a free name."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self._taken = {name for node in onnx_files.nodes(model) for name in (*node.input, *node.output)}
        for graph in onnx_files.graphs(model.graph):
            self._taken |= {part.name for part in (*graph.input, *graph.initializer)}

    def free(self, name: str) -> str:
        """Return `name`, with underscores added while the name is taken; afterwards the returned name is taken."""
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        return name
