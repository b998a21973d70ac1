"""Matrix work: the number of multiplications of each matrix operator, measured in one run of the graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

from engine.kit.onnx import surgery
from engine.kit.quantization import trials
from engine.runtimes.onnxruntime import session as ort

if TYPE_CHECKING:
    import numpy as np
    import onnx_ir as ir

Extents = Mapping[str, tuple[int, ...]]

_RECURRENT = frozenset({"GRU", "LSTM", "RNN"})
MATRIX = _RECURRENT | {"Attention", "Conv", "ConvTranspose", "Einsum", "Gemm", "MatMul", "MultiHeadAttention"}
"""Operators that multiply matrices, ONNX Runtime's fused attention among them."""


def measured(model: ir.Model, inputs: Mapping[str, np.ndarray], scratch: Path) -> dict[ir.Node, int]:
    """Run a model once on the CPU, and return the number of multiplications of each matrix operator of its main graph.

    ONNX Runtime runs a copy of the model, whose outputs are the shapes of the inputs and outputs of these operators.
    Raises StepError where ONNX Runtime cannot run the model on `inputs`.
    """
    nodes = [node for node in model.graph if node.op_type in MATRIX]
    if not nodes:
        return {}
    stored = model.graph.initializers
    names = sorted({name for node in nodes for name in surgery.names(node)} - stored.keys())
    extents = {name: surgery.shape(value) for name, value in stored.items()}
    extents |= _shapes(model.clone(), names, inputs, scratch)
    return {node: multiplications(node, extents) for node in nodes}


def largest(samples: Sequence[Mapping[str, np.ndarray]]) -> Mapping[str, np.ndarray]:
    """Return the sample with the most numbers."""
    return max(samples, key=lambda sample: sum(array.size for array in sample.values()))


def multiplications(node: ir.Node, extents: Extents) -> int:
    """Return the number of multiplications of one matrix operator, from the extents of its inputs and outputs."""
    shapes = [extents.get(name, ()) for name in surgery.input_names(node)]
    result = prod(extents.get(surgery.output_names(node)[0], (0,)))
    if node.op_type in {"Conv", "ConvTranspose"}:
        # A filter is applied once per output element; of a transposed convolution once per input element.
        return (result if node.op_type == "Conv" else prod(shapes[0])) * prod(shapes[1][1:])
    if node.op_type == "Attention" and len(shapes) > 1 and len(shapes[1]) == 2:  # noqa: PLR2004  fused, with weights
        return prod(shapes[0]) * shapes[1][1] + 2 * result * shapes[0][1]
    if node.op_type in {"Attention", "MultiHeadAttention"}:
        return 2 * result * _inner(shapes[1], -2)
    if node.op_type in _RECURRENT:  # each step of each row multiplies the input and the state by all of their weights
        return prod(shapes[0][:2]) * (prod(shapes[1]) + prod(shapes[2]))
    if node.op_type == "Einsum":
        return max(map(prod, (*shapes, (result,))))
    is_transposed = node.op_type == "Gemm" and node.attributes.get_int("transA")
    return result * _inner(shapes[0], 0 if is_transposed else -1)


def _shapes(
    model: ir.Model, names: Sequence[str], inputs: Mapping[str, np.ndarray], scratch: Path
) -> dict[str, tuple[int, ...]]:
    """Run a model once, and return the shapes of the named tensors; `model` is changed."""
    values = surgery.values(model.graph)
    shapes = {name: f"shape_{number}_of_{name}" for number, name in enumerate(names)}
    nodes = [surgery.node("Shape", [values[name]], shape, "") for name, shape in shapes.items()]
    model.graph.extend(nodes)
    model.graph.outputs[:] = [node.outputs[0] for node in nodes]
    results = ort.run(trials.opened(model, scratch), inputs)
    return {name: tuple(int(extent) for extent in results[shape]) for name, shape in shapes.items()}


def _inner(shape: tuple[int, ...], axis: int) -> int:
    """Return the extent of an axis of a shape; 1 where the shape has too few axes."""
    return shape[axis] if len(shape) > max(axis, -axis - 1) else 1
