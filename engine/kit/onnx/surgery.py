"""Surgery: nodes and stored tensors of a graph are made, named, replaced and removed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from engine.kit.onnx import mapped_weights
from engine.runtimes.preparation import CONTRIBUTED

if TYPE_CHECKING:
    import numpy as np
    import onnx_ir as ir

    Attribute = int | float | str | Sequence[int]


def node(operator: str, inputs: Sequence[ir.Value | None], output: str, name: str, **attributes: Attribute) -> ir.Node:
    """Return a node of ONNX's own domain with one output, which is named `output`."""
    import onnx_ir as ir

    return ir.node(operator, inputs, dict(sorted(attributes.items())), outputs=[ir.Value(name=output)], name=name)


def contributed(
    operator: str, inputs: Sequence[ir.Value | None], instead_of: ir.Node, name: str, **attributes: Attribute
) -> ir.Node:
    """Return a node of ONNX Runtime's own domain, whose output has the name of the output of `instead_of`."""
    result = node(operator, inputs, instead_of.outputs[0].name or "", name, **attributes)
    result.domain = CONTRIBUTED
    return result


def replace(old: ir.Node, nodes: Sequence[ir.Node]) -> None:
    """Put nodes in the place of a node with one output; the last of the nodes gives this output instead."""
    import onnx_ir as ir

    graph = graph_of(old)
    ir.convenience.replace_nodes_and_values(graph, old, [old], nodes, old.outputs[:1], nodes[-1].outputs)


def follow(value: ir.Value, renamed: str, follower: ir.Node) -> None:
    """Insert a node behind the producer of a value: the readers of the value read the output of the node instead.

    The output of the node takes over the name, the type and the shape of the value, which is renamed.
    """
    producer, result = value.producer(), follower.outputs[0]
    if producer is None:
        raise ValueError(f"no node gives {value.name}")
    own = [index for index, each in enumerate(follower.inputs) if each is value]
    result.name, value.name = value.name, renamed
    result.type, result.shape = value.type, value.shape
    value.replace_all_uses_with(result, replace_graph_outputs=True)
    for index in own:
        follower.replace_input_with(index, value)
    graph_of(producer).insert_after(producer, follower)


def input_names(node: ir.Node) -> list[str]:
    """Return the names of a node's inputs; an input that the node leaves out has the name ""."""
    return ["" if value is None else value.name or "" for value in node.inputs]


def output_names(node: ir.Node) -> list[str]:
    """Return the names of a node's outputs; an output that the node leaves out has the name ""."""
    return [value.name or "" for value in node.outputs]


def names(node: ir.Node) -> list[str]:
    """Return the names of all inputs and outputs that a node has."""
    return [name for name in (*input_names(node), *output_names(node)) if name]


def values(graph: ir.Graph) -> dict[str, ir.Value]:
    """Return the inputs, the stored tensors and the computed values of a graph by name, without those of bodies."""
    import onnx_ir as ir

    return ir.convenience.create_value_mapping(graph, include_subgraphs=False)


def bodies(node: ir.Node) -> Iterator[ir.Graph]:
    """Yield the graphs that a node holds, without the graphs inside them."""
    import onnx_ir as ir

    for attribute in node.attributes.values():
        if attribute.type == ir.AttributeType.GRAPH:
            yield attribute.as_graph()
        elif attribute.type == ir.AttributeType.GRAPHS:
            yield from attribute.as_graphs()


def graph_of(part: ir.Node | ir.Value) -> ir.Graph:
    """Return the graph, or the body, that holds a node or a stored tensor. Raises ValueError where there is none."""
    if part.graph is None:
        raise ValueError(f"{part.name} is in no graph")
    return part.graph


def tensor(value: ir.Value) -> ir.TensorProtocol:
    """Return the tensor that is stored for a value. Raises ValueError for a value that is computed."""
    if value.const_value is None:
        raise ValueError(f"{value.name} is no stored tensor")
    return value.const_value


def shape(value: ir.Value) -> tuple[int, ...]:
    """Return the extents of a stored tensor. Raises ValueError for a value that is computed."""
    return tuple(tensor(value).shape.numpy())


def numbers(value: ir.Value) -> np.ndarray:
    """Return the numbers of a stored tensor; those of a mapped tensor are read from disk where they are used."""
    return tensor(value).numpy()


def is_float32(value: ir.Value) -> bool:
    """Whether a value is a stored float32 tensor."""
    import onnx_ir as ir

    return value.is_initializer() and tensor(value).dtype == ir.DataType.FLOAT


def store(graph: ir.Graph, name: str, values: np.ndarray) -> ir.Value:
    """Add a stored tensor to a graph, and return its value; large numbers may go to a file (`mapped_weights`)."""
    import onnx_ir as ir

    value = ir.Value(name=name)
    restore(value, values)
    graph.register_initializer(value)
    return value


def constant(node: ir.Node, values: np.ndarray) -> None:
    """Give a Constant or a ConstantOfShape other numbers, in place of the attribute that holds its numbers."""
    import onnx_ir as ir
    from onnx import numpy_helper

    for name in [name for name in node.attributes if name.startswith("value")]:
        del node.attributes[name]
    node.attributes.add(ir.AttrTensor("value", ir.from_proto(numpy_helper.from_array(values))))


def restore(value: ir.Value, values: np.ndarray) -> None:
    """Give a stored tensor other numbers, under the same name."""
    import onnx_ir as ir

    stored = ir.from_proto(mapped_weights.tensor_of(values, value.name or ""))
    value.const_value, value.type, value.shape = stored, ir.TensorType(stored.dtype), ir.Shape(stored.shape)


def is_unread(value: ir.Value) -> bool:
    """Whether no node reads a value, in the graph or in a body, and no graph gives it as an output."""
    return not value.uses() and not value.is_graph_output()


def drop_unread(values: Iterable[ir.Value]) -> None:
    """Remove the unread ones of some stored tensors; in old models they are inputs of their graph as well."""
    for value in list(values):
        if value.is_initializer() and is_unread(value):
            graph = graph_of(value)
            if value.is_graph_input():
                graph.inputs.remove(value)
            del graph.initializers[value.name or ""]


def renamed(stored: ir.TensorProtocol, name: str) -> ir.TensorProtocol:
    """Return the same numbers as a tensor of another name; mapped numbers stay in their file."""
    import onnx_ir as ir

    message = ir.to_proto(stored)
    message.name = name
    tensor: ir.TensorProtocol = ir.from_proto(message)
    return tensor


def name_nodes(model: ir.Model, *, with_output: bool = False) -> None:
    """Give every node of the main graph a unique name; a node keeps its name if no earlier node has the same name.

    A new name consists of the node's operator and the node's position in the graph. `with_output` adds the name of the
    node's first output to a new name, as in the models of dynamic int8, whose bytes must not change.
    """
    taken: set[str] = set()
    for index, node in enumerate(model.graph):
        name = node.name or ""
        if with_output and (not name or name in taken):
            name = f"{node.op_type}_{index}_{node.outputs[0].name}"
        name = name or f"{node.op_type}_{index}"
        while name in taken:
            name += f"_{index}"
        node.name = name
        taken.add(name)


class TensorNames:
    """The names of a model's tensors, including those in bodies of nodes, so that a new tensor gets a free name."""

    def __init__(self, model: ir.Model) -> None:
        self._taken: set[str] = set()
        for graph in model.graphs():
            self._taken.update(value.name or "" for value in (*graph.inputs, *graph.initializers.values()))
            self._taken.update(value.name or "" for node in graph for value in node.outputs)

    def free(self, name: str) -> str:
        """Return `name`, with underscores added while the name is taken; afterwards the returned name is taken."""
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        return name
