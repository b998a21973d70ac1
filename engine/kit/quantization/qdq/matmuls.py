"""MatMuls: the MatMuls and convolutions that can be quantized, grouped by their input, with their multiplications."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from engine.errors import StepError
from engine.kit.onnx import surgery
from engine.kit.onnx.onnx_files import Input
from engine.kit.quantization import matmul_work
from engine.kit.quantization.low_bits import BLOCK, Kind
from engine.kit.quantization.trials import Trials

if TYPE_CHECKING:
    import numpy as np
    import onnx_ir as ir

TOKENS = 128
"""The number of tokens in the row for which the multiplications of each MatMul are counted.

The multiplications of attention grow with the square of the number of tokens.
"""

CONVOLUTION = "Conv"


@dataclass(frozen=True)
class Group:
    """The MatMuls, or the convolutions, that read the tensor `source`, which are all quantized together.

    `results` and `weights` name the outputs and the weights of the layers.
    """

    source: str
    results: tuple[str, ...]
    weights: tuple[str, ...]
    is_convolution: bool = False


@dataclass(frozen=True)
class Candidates:
    """The groups that can be quantized, why each remaining layer cannot be quantized, and the name of every layer.

    `unfit` maps the output of a layer to the reason why the layer cannot be quantized; `names` maps the output of a
    layer to its node's name.
    """

    groups: tuple[Group, ...]
    unfit: Mapping[str, str]
    names: Mapping[str, str]


class Weights:
    """The constants of a graph by name: stored tensors, Constant nodes, and constants behind Transpose and Identity."""

    def __init__(self, model: ir.Model) -> None:
        self.values = surgery.values(model.graph)

    def shape(self, name: str) -> tuple[int, ...] | None:
        """Return the extents of a float32 constant; None for a tensor that is no float32 constant."""
        import onnx_ir as ir

        tensor, turned = self._constant(name)
        if tensor is None or tensor.dtype != ir.DataType.FLOAT:
            return None
        shape = tuple(tensor.shape.numpy())
        return tuple(shape[axis] for axis in turned) if turned else shape

    def array(self, name: str) -> np.ndarray:
        """Return the values of a float32 constant. Raises KeyError for a tensor that is not constant."""
        tensor, turned = self._constant(name)
        if tensor is None:
            raise KeyError(name)
        return tensor.numpy().transpose(turned) if turned else tensor.numpy()

    def _constant(self, name: str) -> tuple[ir.TensorProtocol | None, list[int]]:
        """Return the tensor of a constant, and the order of its axes in the constant: [] if they are not turned."""
        value = self.values.get(name)
        if value is None or value.is_initializer():
            return None if value is None else surgery.tensor(value), []
        node = value.producer()
        if node is not None and node.op_type == "Constant":
            return node.attributes.get_tensor("value", None), []
        source = node.inputs[0] if node is not None and node.op_type in {"Identity", "Transpose"} else None
        if node is None or source is None:
            return None, []
        tensor, turned = self._constant(source.name or "")
        if tensor is None or node.op_type == "Identity":
            return tensor, turned
        order = list(node.attributes.get_ints("perm", None) or reversed(range(len(tensor.shape))))
        return tensor, [turned[axis] for axis in order] if turned else order


def find(model: ir.Model, weights: Weights, kind: Kind, kept: Mapping[str, str] = MappingProxyType({})) -> Candidates:
    """Return the MatMuls of the main graph in groups, and the reasons why other MatMuls cannot be quantized.

    A MatMul can be quantized if its second factor is a constant matrix. Of a graph for int8, convolutions are layers,
    too: a convolution can be quantized if it is dense and its weights are constant. A depthwise convolution reads each
    number a few times only, so that fewer bits gain little, and has the largest errors. `kept` has the names of nodes
    that are not quantized, with the reasons.
    """
    groups: dict[tuple[str, str], list[ir.Node]] = {}
    unfit: dict[str, str] = {}
    names: dict[str, str] = {}
    for node in model.graph:
        if node.op_type not in layers_of(kind):
            continue
        (result,) = surgery.output_names(node)
        names[result] = node.name or result
        left, right = surgery.input_names(node)[:2]
        if node.op_type == CONVOLUTION:
            reason = _unfit_convolution(node, left, right, weights)
        else:
            reason = _unfit(left, right, weights, kind)
        reason = kept.get(names[result], reason)
        if reason:
            unfit[result] = reason
        else:
            groups.setdefault((left, node.op_type), []).append(node)
    for left, operator in list(groups):
        if operator == CONVOLUTION and (left, "MatMul") in groups:  # they divide the tensor into channels differently
            mixed = groups.pop((left, operator))
            unfit |= {surgery.output_names(node)[0]: "a MatMul reads its input, too" for node in mixed}
    fit = tuple(
        Group(
            source,
            tuple(surgery.output_names(node)[0] for node in nodes),
            tuple(surgery.input_names(node)[1] for node in nodes),
            operator == CONVOLUTION,
        )
        for (source, operator), nodes in groups.items()
    )
    return Candidates(fit, unfit, names)


def layers_of(kind: Kind) -> tuple[str, ...]:
    """Return the operators that can be quantized to a type."""
    return ("MatMul", CONVOLUTION) if kind == "int8" else ("MatMul",)


def multiplications(trials: Trials, samples: Sequence[Mapping[str, np.ndarray]], kind: Kind = "fp8") -> dict[str, int]:
    """Return the number of multiplications of every main-graph layer, by its output's name, for one row of 128 tokens.

    A model that cannot take 128 tokens, or has no free axes, runs on the largest sample.
    """
    largest = matmul_work.largest(samples)
    try:
        counts = matmul_work.measured(trials.model, _stretched(trials.inputs, largest), trials.scratch)
    except StepError:  # 128 tokens are more than its table of positions holds, for example
        counts = matmul_work.measured(trials.model, largest, trials.scratch)
    return {surgery.output_names(node)[0]: count for node, count in counts.items() if node.op_type in layers_of(kind)}


def _unfit(left: str, right: str, weights: Weights, kind: Kind) -> str:
    """Return the reason why a MatMul of two tensors cannot be quantized; an empty text if it can be quantized."""
    shape = weights.shape(right)
    if shape is None:
        on_the_left = weights.shape(left) is not None
        return "its weights are on the left" if on_the_left else "both factors are computed: no weights"
    if len(shape) != 2 or 1 in shape:  # noqa: PLR2004  [input, output]
        return "its weights are no matrix"
    if weights.shape(left) is not None:
        return "both factors are constant"
    if kind == "int4" and shape[0] % BLOCK:
        return f"its {shape[0]} inputs do not divide into blocks of {BLOCK}"
    return ""


def _unfit_convolution(node: ir.Node, left: str, right: str, weights: Weights) -> str:
    """Return the reason why a convolution cannot be quantized; an empty text if it can be quantized."""
    if weights.shape(right) is None:
        return "its weights are computed"
    if weights.shape(left) is not None:
        return "both factors are constant"
    return "it is a grouped convolution" if node.attributes.get_int("group", 1) > 1 else ""


def _stretched(inputs: Mapping[str, Input], sample: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return a sample cut to one row, with its other free axes cut or repeated to 128 entries."""
    import numpy as np

    stretched = {}
    for name, value in inputs.items():
        extents = [
            extent if isinstance(extent, int) else 1 if axis == 0 else TOKENS for axis, extent in enumerate(value.shape)
        ]
        array = sample[name]
        for axis, extent in enumerate(extents):
            array = np.take(array, np.arange(extent) % max(1, array.shape[axis]), axis=axis)
        stretched[name] = array
    return stretched
