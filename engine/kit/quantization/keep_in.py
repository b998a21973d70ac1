"""Keep in: which nodes of a graph keep their precision because a recipe names them, or a module around them."""

# The recipe has names of the original graph. Between that graph and the one that is quantized, operators are fused,
# folded and split, but most tensors keep their names: these tell for which original nodes a node stands.

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import FieldError
from engine.kit.onnx import graphs, onnx_files, surgery
from engine.kit.quantization.report import Left
from engine.text import suggestions

if TYPE_CHECKING:
    import onnx
    import onnx_ir as ir

_SCOPES = "pkg.torch.onnx.name_scopes"
"""The metadata in which torch's newer exporter notes the modules of a node, the outermost first, then the node."""
_WRAPPER = "model"
"""The attribute by which the exported module holds the original model (`modules.by_position`)."""


@dataclass(frozen=True)
class NamedLayers:
    """Names of modules and nodes of the graph `original`; without names, no node is kept."""

    names: tuple[str, ...] = ()
    original: onnx.ModelProto | None = None

    def nodes(self, model: ir.Model) -> dict[str, str]:
        """Return the names of the main graph's nodes that are kept, each with the reason.

        A node without a name goes by the name of its first output. A node that stands for several original nodes is
        kept if one of them is named.
        """
        if self.original is None or not self.names:
            return {}
        reasons: dict[int, str] = {}
        for index, node in enumerate(self.original.graph.node):
            own = set(names_of(node))
            for name in self.names:
                if matches(name, own):
                    reasons.setdefault(index, f"`quantize.keep_in` names {name}")
        kept = {}
        for node, origins in _origins(model.graph, self.original.graph).items():
            if reason := next((reasons[index] for index in sorted(origins) if index in reasons), None):
                kept[_name(node)] = reason
        return kept

    def layers(self, model: ir.Model) -> tuple[Left, ...]:
        """Return the nodes with stored matrices that are kept, in the order of the graph, for a report."""
        kept = self.nodes(model)
        nodes = [node for node in model.graph if _name(node) in kept and any(map(_is_matrix, node.inputs))]
        return tuple(Left(_name(node), kept[_name(node)], None) for node in nodes)


NOTHING = NamedLayers()


def of(names: Sequence[str], original: Path | None) -> NamedLayers:
    """Return the nodes to keep by their names in the graph of the folder `original`."""
    return NamedLayers(tuple(names), None if original is None or not names else onnx_files.load_graph(original))


def refuse_unknown(keep_in: Mapping[str, Sequence[str]], artifact: Path) -> None:
    """Raise FieldError for a name that no module and no node has in the graphs of an artifact.

    `keep_in` maps a precision to names.
    """
    nodes = [
        node for folder in graphs.folders(artifact) for node in onnx_files.load_graph(artifact / folder).graph.node
    ]
    known = dict.fromkeys(name for node in nodes for name in names_of(node))
    for precision, names in keep_in.items():
        for index, name in enumerate(names):
            if not matches(name, known.keys()):
                what = f"the model has no module and no node with the name {name!r}"
                raise FieldError(what, ("quantize", "keep_in", precision, index), hint=_hint(name, known))


def _hint(name: str, known: Collection[str]) -> str:
    """Return a hint with the nearest name; with names of modules to choose from where none is near."""
    near = suggestions.nearest(name, known)
    if near:
        return suggestions.did_you_mean(f"`{near[0]}`")
    return f"names are such as {', '.join(f'`{each}`' for each in list(known)[:3])}; `*` stands for any text"


def matches(pattern: str, names: Collection[str]) -> bool:
    """Tell whether a name in `keep_in`, in which `*` stands for any text, is one of `names`."""
    return pattern in names or any(fnmatchcase(name, pattern) for name in names)


def names_of(node: onnx.NodeProto) -> Iterator[str]:
    """Yield the names of the modules that a node belongs to, the innermost first, and the name of the node.

    Torch's exporters note the modules: in the name of a node, such as /model/encoder/layer.0/output/dense/MatMul, or in
    its metadata. The names are those of the original model, without the module that was put around it for the export.
    """
    name = node.name or node.output[0]
    noted = next((each.value for each in node.metadata_props if each.key == _SCOPES), None)
    scopes = name.split("/") if noted is None else re.findall("'([^']*)'", noted)[-2:]
    parts = [part for scope in scopes[:-1] for part in scope.split(".") if part]
    for start in (1, 0) if parts[:1] == [_WRAPPER] else (0,):
        yield from (".".join(parts[start:end]) for end in range(len(parts), start, -1))
    yield name


def _name(node: ir.Node) -> str:
    return node.name or node.outputs[0].name or ""


def _is_matrix(value: ir.Value | None) -> bool:
    return value is not None and value.is_initializer() and len(surgery.tensor(value).shape) > 1


def _origins(graph: ir.Graph, original: onnx.GraphProto) -> Mapping[ir.Node, set[int]]:
    """Return, for each node of a changed graph, the indices of the original nodes for which it stands.

    - A node that gives a tensor of the original stands for the nodes that computed it there, back to tensors that the
      changed graph has, too: a fused attention stands for the products of its queries, keys and values.
    - Else a node that reads stored tensors of the original stands for the nodes that read them there.
    - Any other node is an addition, and stands for what the nodes that read it stand for.
    """
    makers = {name: index for index, node in enumerate(original.node) for name in node.output if name}
    readers = _readers(original)
    origins: dict[ir.Node, set[int]] = {}
    for node in graph:
        if not any(value.name in makers for value in node.outputs):
            stored = (value.name for value in node.inputs if value is not None and value.is_initializer())
            origins[node] = set().union(*(readers.get(name or "", ()) for name in stored))
    ends = {name for node in graph for value in node.outputs if (name := value.name or "") in makers}
    ends |= {name for indices in origins.values() for index in indices for name in original.node[index].output}
    for node in reversed(graph):
        if node not in origins:
            pending = [makers[value.name] for value in node.outputs if value.name in makers]
            origins[node] = _back(pending, original, makers, ends)
        elif not origins[node]:
            users = (use.node for value in node.outputs for use in value.uses())
            origins[node] = set().union(*(origins.get(user, set()) for user in users))
    return origins


def _back(pending: list[int], original: onnx.GraphProto, makers: Mapping[str, int], ends: Collection[str]) -> set[int]:
    """Return the original nodes behind `pending`, and these, up to tensors in `ends`."""
    passed: set[int] = set()
    while pending:
        index = pending.pop()
        if index not in passed:
            passed.add(index)
            pending += [makers[name] for name in original.node[index].input if name in makers and name not in ends]
    return passed


def _readers(original: onnx.GraphProto) -> Mapping[str, set[int]]:
    """Return the indices of the nodes that read each stored weight: a tensor of more than one number."""
    readers: dict[str, set[int]] = {
        name: set() for name, tensor in onnx_files.initializers(original).items() if math.prod(tensor.dims) > 1
    }
    for index, node in enumerate(original.node):
        for name in node.input:
            if name in readers:
                readers[name].add(index)
    return readers
