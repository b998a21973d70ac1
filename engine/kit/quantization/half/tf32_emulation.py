"""Emulation of TF32 on a CPU: the inputs of products are rounded to the 10 bits that a GPU's tensor cores read."""

# Source: NVIDIA, "NVIDIA A100 Tensor Core GPU Architecture": TF32 has the 8 bits of fp32's exponent and 10 bits of
# mantissa; products are added up in fp32.

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.kit.onnx import surgery
from engine.kit.quantization.half.emulation import infer_types

if TYPE_CHECKING:
    import numpy as np
    import onnx_ir as ir

_PRODUCTS = frozenset({"MatMul", "Gemm", "Conv", "ConvTranspose", "FusedMatMul", "Attention"})
"""Operators whose first two inputs a GPU multiplies. A third input, the bias, is added in fp32.

Of an Attention of ONNX Runtime, that is the product with the weights alone: the products inside stay in fp32.
"""
_DROPPED = 13
"""The bits of fp32's mantissa that TF32 drops: 23 - 10."""
_LARGEST = 2.0**100
"""Larger numbers are not rounded, because the product with `2**13 + 1` would be infinite."""


def emulate(model: ir.Model) -> None:
    """Round what the products of the main graph read to TF32; `model` is changed.

    The numbers are rounded to the nearest. A GPU's library may cut the bits off instead, with at most twice the error.
    A changed model must run with ONNX Runtime's optimizations disabled.
    """
    infer_types(model)
    rounded: dict[ir.Value, ir.Value] = {}
    for node in list(model.graph):
        if node.op_type not in _PRODUCTS:
            continue
        for index, value in enumerate(node.inputs[:2]):
            if value is not None and _is_single(value):
                if value not in rounded:
                    rounded[value] = _rounded(model.graph, value, node)
                node.replace_input_with(index, rounded[value])
    surgery.drop_unread(model.graph.initializers.values())


def nearest(numbers: np.ndarray) -> np.ndarray:
    """Return float32 numbers rounded to the nearest of TF32; of two equally near, the one whose last bit is 0."""
    import numpy as np

    bits = np.ascontiguousarray(numbers, np.float32).view(np.uint32)
    even = (bits >> np.uint32(_DROPPED)) & np.uint32(1)
    up = bits + np.uint32((1 << (_DROPPED - 1)) - 1) + even
    cut = (up & np.uint32(0xFFFFFFFF << _DROPPED & 0xFFFFFFFF)).view(np.float32)
    return np.where(np.isfinite(numbers), cut, numbers).astype(np.float32)


def _is_single(value: ir.Value) -> bool:
    import onnx_ir as ir

    return value.dtype == ir.DataType.FLOAT


def _rounded(graph: ir.Graph, value: ir.Value, reader: ir.Node) -> ir.Value:
    """Return a value in TF32: a stored one rounded now, another one rounded by nodes in front of its first reader."""
    name = f"{value.name}_tf32"
    if value.is_initializer() and not value.is_graph_input():
        return surgery.store(graph, name, nearest(surgery.numbers(value)))
    return _rounding(graph, value, reader, name)


def _rounding(graph: ir.Graph, value: ir.Value, reader: ir.Node, name: str) -> ir.Value:
    """Add the nodes that round a computed value, as `c - (c - x)` with `c = x * (2**13 + 1)` (Veltkamp's splitting).

    Source: T. J. Dekker, "A floating-point technique for extending the available precision", 1971.
    """
    import numpy as np

    factor = surgery.store(graph, f"{name}_factor", np.array(2**_DROPPED + 1, np.float32))
    limit = surgery.store(graph, f"{name}_limit", np.array(_LARGEST, np.float32))
    scaled = surgery.node("Mul", [value, factor], f"{name}_scaled", f"{name}_scale")
    rest = surgery.node("Sub", [scaled.outputs[0], value], f"{name}_rest", f"{name}_subtract")
    split = surgery.node("Sub", [scaled.outputs[0], rest.outputs[0]], f"{name}_split", f"{name}_split")
    size = surgery.node("Abs", [value], f"{name}_size", f"{name}_abs")
    small = surgery.node("Less", [size.outputs[0], limit], f"{name}_small", f"{name}_less")
    chosen = surgery.node("Where", [small.outputs[0], split.outputs[0], value], name, f"{name}_choose")
    for node in (scaled, rest, split, size, small, chosen):
        graph.insert_before(reader, node)
    return chosen.outputs[0]
