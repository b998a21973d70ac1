"""MatMuls: the MatMuls that can be quantized, grouped by their input, and the number of multiplications of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from engine.errors import StepError
from engine.kit.onnx import mapped_weights, onnx_files, topology
from engine.kit.quantization.low_bits import BLOCK, Kind
from engine.kit.quantization.trials import Trials
from engine.runtimes.onnxruntime import session as ort

if TYPE_CHECKING:
    import numpy as np
    import onnx

TOKENS = 128
"""The number of tokens in the row for which the multiplications of each MatMul are counted.

The multiplications of attention grow with the square of the number of tokens.
"""
_SHAPE = "_shape_of_it"


@dataclass(frozen=True)
class Group:
    """The MatMuls that read the tensor `source`, which are all quantized together.

    `results` and `weights` name the outputs and the weights of the MatMuls.
    """

    source: str
    results: tuple[str, ...]
    weights: tuple[str, ...]


@dataclass(frozen=True)
class Candidates:
    """The groups that can be quantized, why each remaining MatMul cannot be quantized, and the name of every MatMul.

    `unfit` maps the output of a MatMul to the reason why the MatMul cannot be quantized; `names` maps the output of a
    MatMul to its node's name.
    """

    groups: tuple[Group, ...]
    unfit: Mapping[str, str]
    names: Mapping[str, str]


class Weights:
    """The constants of a graph by name: initializers, Constant nodes, and constants behind Transpose and Identity."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.stored = topology.initializers(model.graph)
        constants = [node for node in model.graph.node if node.op_type in {"Constant", "Identity", "Transpose"}]
        self.producers = {node.output[0]: node for node in constants}

    def shape(self, name: str) -> tuple[int, ...] | None:
        """Return the extents of a float32 constant; None for a tensor that is no float32 constant."""
        import onnx

        if name in self.stored:
            tensor = self.stored[name]
            return tuple(tensor.dims) if tensor.data_type == onnx.TensorProto.FLOAT else None
        node = self.producers.get(name)
        if node is None:
            return None
        if node.op_type == "Constant":
            values = [attribute.t for attribute in node.attribute if attribute.HasField("t")]
            return tuple(values[0].dims) if values and values[0].data_type == onnx.TensorProto.FLOAT else None
        inner = self.shape(node.input[0])
        return inner if inner is None or node.op_type == "Identity" else tuple(inner[axis] for axis in _order(node))

    def array(self, name: str) -> np.ndarray:
        """Return the values of a float32 constant. Raises KeyError for a tensor that is not constant."""
        node = self.producers.get(name)
        if name in self.stored:
            return mapped_weights.array(self.stored[name])
        if node is None:
            raise KeyError(name)
        if node.op_type == "Constant":
            value = next(attribute.t for attribute in node.attribute if attribute.HasField("t"))
            return mapped_weights.array(value)
        values = self.array(node.input[0])
        return values if node.op_type == "Identity" else values.transpose(_order(node))


def find(model: onnx.ModelProto, weights: Weights, kind: Kind) -> Candidates:
    """Return the MatMuls of the main graph in groups, and the reasons why other MatMuls cannot be quantized.

    A MatMul can be quantized if its second factor is a constant matrix.
    """
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
    fit = tuple(
        Group(source, tuple(node.output[0] for node in nodes), tuple(node.input[1] for node in nodes))
        for source, nodes in groups.items()
    )
    return Candidates(fit, unfit, names)


def work(trials: Trials, samples: Sequence[Mapping[str, np.ndarray]]) -> dict[str, int]:
    """Return the number of multiplications of every main-graph MatMul, by its output's name, for one row of 128 tokens.

    A run of the model measures the shapes of the MatMuls' inputs and outputs. A model that cannot take 128 tokens, or
    has no free axes, runs on the largest sample.
    """
    model = trials.graph()
    nodes = [node for node in model.graph.node if node.op_type == "MatMul"]
    _add_shapes(model, nodes)
    session = trials.session(model)
    largest = max(samples, key=lambda sample: sum(array.size for array in sample.values()))
    try:
        shapes = ort.run(session, _stretched(model, largest))
    except StepError:  # 128 tokens are more than its table of positions holds, for example
        shapes = ort.run(session, largest)
    multiplications = {}
    for node in nodes:
        inner = shapes[f"{node.input[0]}{_SHAPE}"]
        multiplications[node.output[0]] = prod(int(n) for n in shapes[f"{node.output[0]}{_SHAPE}"]) * int(inner[-1])
    return multiplications


def _unfit(node: onnx.NodeProto, weights: Weights, kind: Kind) -> str:
    """Return the reason why a MatMul cannot be quantized; an empty text for a MatMul that can be quantized."""
    shape = weights.shape(node.input[1])
    if shape is None:
        on_the_left = weights.shape(node.input[0]) is not None
        return "its weights are on the left" if on_the_left else "both factors are computed: no weights"
    if len(shape) != 2 or 1 in shape:  # noqa: PLR2004  [input, output]
        return "its weights are no matrix"
    if weights.shape(node.input[0]) is not None:
        return "both factors are constant"
    if kind == "int4" and shape[0] % BLOCK:
        return f"its {shape[0]} inputs do not divide into blocks of {BLOCK}"
    return ""


def _order(node: onnx.NodeProto) -> list[int]:
    """Return the order of axes that a Transpose of a matrix gives; without `perm`, Transpose swaps the two axes."""
    axes = next((list(attribute.ints) for attribute in node.attribute if attribute.name == "perm"), None)
    return axes or [1, 0]


def _add_shapes(model: onnx.ModelProto, nodes: Sequence[onnx.NodeProto]) -> None:
    """Add an output to the model for the shape of each node's first input and first output."""
    from onnx import helper

    tensors = dict.fromkeys(name for node in nodes for name in (node.input[0], node.output[0]))
    for name in tensors:
        model.graph.node.append(helper.make_node("Shape", [name], [f"{name}{_SHAPE}"]))
        model.graph.output.append(helper.make_empty_tensor_value_info(f"{name}{_SHAPE}"))


def _stretched(model: onnx.ModelProto, sample: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return a sample cut to one row, with its other free axes cut or repeated to 128 entries."""
    import numpy as np

    stretched = {}
    for name, value in onnx_files.inputs(model).items():
        extents = [
            extent if isinstance(extent, int) else 1 if axis == 0 else TOKENS for axis, extent in enumerate(value.shape)
        ]
        array = sample[name]
        for axis, extent in enumerate(extents):
            array = np.take(array, np.arange(extent) % max(1, array.shape[axis]), axis=axis)
        stretched[name] = array
    return stretched
