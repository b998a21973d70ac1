"""MatMuls: those that could be quantized, grouped by the tensor that they read, and the work of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from engine.errors import StepError
from engine.kit.onnx import onnx_files, topology
from engine.kit.quantization.low_bits import BLOCK, Kind
from engine.kit.quantization.trials import Trials
from engine.runtimes.onnxruntime import session as ort

if TYPE_CHECKING:
    import numpy as np
    import onnx

TOKENS = 128
"""The length at which shares of the work are told: that of products of attention grows with its square."""
_SHAPE = "_shape_of_it"


@dataclass(frozen=True)
class Group:
    """MatMuls that read one tensor and are quantized together; each is known by what it gives."""

    source: str
    results: tuple[str, ...]
    weights: tuple[str, ...]


@dataclass(frozen=True)
class Candidates:
    """The groups that could be quantized, why each other MatMul cannot, and what each is called by its result."""

    groups: tuple[Group, ...]
    unfit: Mapping[str, str]
    names: Mapping[str, str]


class Weights:
    """The constants of a graph by the name under which nodes read them: stored, turned round or handed on."""

    def __init__(self, trials: Trials, model: onnx.ModelProto) -> None:
        self.trials = trials
        self.stored = topology.initializers(model.graph)
        makers = [node for node in model.graph.node if node.op_type in {"Constant", "Identity", "Transpose"}]
        self.makers = {node.output[0]: node for node in makers}

    def shape(self, name: str) -> tuple[int, ...] | None:
        """Return the extents of a float32 constant; None for what is none."""
        import onnx

        if name in self.stored:
            tensor = self.stored[name]
            return tuple(tensor.dims) if tensor.data_type == onnx.TensorProto.FLOAT else None
        node = self.makers.get(name)
        if node is None:
            return None
        if node.op_type == "Constant":
            values = [attribute.t for attribute in node.attribute if attribute.HasField("t")]
            return tuple(values[0].dims) if values and values[0].data_type == onnx.TensorProto.FLOAT else None
        inner = self.shape(node.input[0])
        return inner if inner is None or node.op_type == "Identity" else tuple(inner[axis] for axis in _order(node))

    def array(self, name: str) -> np.ndarray:
        """Return the values of a constant that has a shape."""
        import numpy as np
        from onnx import numpy_helper

        node = self.makers.get(name)
        if name in self.stored:
            return np.asarray(numpy_helper.to_array(self.trials.tensor(self.stored[name])))
        if node is None:
            raise KeyError(name)
        if node.op_type == "Constant":
            value = next(attribute.t for attribute in node.attribute if attribute.HasField("t"))
            return np.asarray(numpy_helper.to_array(self.trials.tensor(value)))
        values = self.array(node.input[0])
        return values if node.op_type == "Identity" else values.transpose(_order(node))


def find(model: onnx.ModelProto, weights: Weights, kind: Kind) -> Candidates:
    """Return the MatMuls of the main graph: those with a constant matrix on the right, and why not the others."""
    groups: dict[str, list[onnx.NodeProto]] = {}
    unfit: dict[str, str] = {}
    names: dict[str, str] = {}
    for node in model.graph.node:
        if node.op_type != "MatMul":
            continue
        names[node.output[0]] = node.name or node.output[0]
        reason = _unfit(node, weights, kind)
        if reason:
            unfit[node.output[0]] = reason
        else:
            groups.setdefault(node.input[0], []).append(node)
    made = tuple(
        Group(source, tuple(node.output[0] for node in nodes), tuple(node.input[1] for node in nodes))
        for source, nodes in groups.items()
    )
    return Candidates(made, unfit, names)


def work(trials: Trials, samples: Sequence[Mapping[str, np.ndarray]]) -> dict[str, int]:
    """Return the multiplications of every MatMul of the main graph, by its result, for one row of 128 tokens.

    Extents are those of a real run. Where the model cannot take so many tokens, or has no free axes, the extents are
    those of the largest sample.
    """
    model = trials.graph()
    nodes = [node for node in model.graph.node if node.op_type == "MatMul"]
    _add_shapes(model, nodes)
    session = trials.session(model)
    largest = max(samples, key=lambda sample: sum(array.size for array in sample.values()))
    try:
        shapes = ort.run(session, _stretched(model, largest))
    except StepError:  # longer than its table of positions, for one
        shapes = ort.run(session, largest)
    found = {}
    for node in nodes:
        inner = shapes[f"{node.input[0]}{_SHAPE}"]
        found[node.output[0]] = prod(int(n) for n in shapes[f"{node.output[0]}{_SHAPE}"]) * int(inner[-1])
    return found


def _unfit(node: onnx.NodeProto, weights: Weights, kind: Kind) -> str:
    shape = weights.shape(node.input[1])
    if shape is None:
        held = weights.shape(node.input[0]) is not None
        return "its weights are on the left" if held else "both factors are computed: no weights"
    if len(shape) != 2 or 1 in shape:  # noqa: PLR2004  [input, output]
        return "its weights are no matrix"
    if weights.shape(node.input[0]) is not None:
        return "both factors are constant"
    if kind == "int4" and shape[0] % BLOCK:
        return f"its {shape[0]} inputs do not divide into blocks of {BLOCK}"
    return ""


def _order(node: onnx.NodeProto) -> list[int]:
    said = next((list(attribute.ints) for attribute in node.attribute if attribute.name == "perm"), None)
    return said or [1, 0]


def _add_shapes(model: onnx.ModelProto, nodes: Sequence[onnx.NodeProto]) -> None:
    from onnx import helper

    wanted = dict.fromkeys(name for node in nodes for name in (node.input[0], node.output[0]))
    for name in wanted:
        model.graph.node.append(helper.make_node("Shape", [name], [f"{name}{_SHAPE}"]))
        model.graph.output.append(helper.make_empty_tensor_value_info(f"{name}{_SHAPE}"))


def _stretched(model: onnx.ModelProto, sample: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return a sample cut to one row and repeated along every other free axis up to 128."""
    import numpy as np

    made = {}
    for name, value in onnx_files.inputs(model).items():
        extents = [
            extent if isinstance(extent, int) else 1 if axis == 0 else TOKENS for axis, extent in enumerate(value.shape)
        ]
        array = sample[name]
        for axis, extent in enumerate(extents):
            array = np.take(array, np.arange(extent) % max(1, array.shape[axis]), axis=axis)
        made[name] = array
    return made
