"""Names: unique names of nodes, and names of new tensors that no other tensor has."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx_ir as ir


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
