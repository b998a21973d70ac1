"""Sparsity: the weights whose zeros lie in the pattern 2:4, the only ones that `sparse_weights` makes faster."""

# Source: NVIDIA, TensorRT documentation, "Sparsity": in each group of four neighbours along the axis that the product
# sums over, at least two weights are zero. The rows of weights must be a multiple of four for that.

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from engine.kit.onnx import ir_models, surgery

if TYPE_CHECKING:
    import numpy as np
    import onnx_ir as ir

_GROUP, _KEPT = 4, 2
_SUMMED = {"Conv": 1, "MatMul": -2, "Gemm": -2}
"""Operator -> the axis of its weights that it sums over."""
_PASSED = ("Cast", "DequantizeLinear", "QuantizeLinear")
"""Operators between a stored tensor and the operator that reads it as weights."""


def counted(directory: Path) -> tuple[int, int]:
    """Return how many weights of `directory/model.onnx` have the pattern 2:4, and how many weights it has.

    Weights are the stored tensors that a Conv, MatMul or Gemm reads as its second input.
    """
    nodes = [node for node in ir_models.load(directory).graph if node.op_type in _SUMMED]
    read = [(stored, _axis(node)) for node in nodes if (stored := _stored(node.inputs[1])) is not None]
    return sum(has_pattern(surgery.numbers(stored), axis) for stored, axis in read), len(read)


def has_pattern(weights: np.ndarray, axis: int) -> bool:
    """Tell whether at most two of each four neighbours along an axis are other than zero."""
    import numpy as np

    along = np.moveaxis(weights, axis, -1)
    if along.shape[-1] % _GROUP:
        return False
    kept = np.count_nonzero(along.reshape(*along.shape[:-1], -1, _GROUP), axis=-1)
    return bool((kept <= _KEPT).all())


def _axis(node: ir.Node) -> int:
    transposed = node.attributes.get("transB")
    return -1 if transposed is not None and transposed.as_int() else _SUMMED[node.op_type]


def _stored(value: ir.Value | None) -> ir.Value | None:
    """Return the stored tensor that a value comes from; None for a value that is computed from inputs."""
    while value is not None and value.const_value is None:
        node = value.producer()
        value = node.inputs[0] if node is not None and node.op_type in _PASSED else None
    return value
