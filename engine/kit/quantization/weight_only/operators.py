"""Operators: MatMulNBits and GatherBlockQuantized in place of the nodes that read a weight."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.kit.onnx import surgery
from engine.kit.onnx.names import TensorNames
from engine.kit.quantization.weight_only import blocks, layers
from engine.runtimes.onnxruntime import matmul_nbits
from engine.runtimes.preparation import CONTRIBUTED

if TYPE_CHECKING:
    import onnx_ir as ir

LOOKUP = "GatherBlockQuantized"
"""ONNX Runtime's operator that reads rows of a table in blocks."""


def replace(model: ir.Model, bits: int, kept: Collection[str] = ()) -> Mapping[str, int]:
    """Store the weights of linear layers, and large tables, with `bits` bits; return how many nodes were replaced.

    A weight that several nodes read, such as a table of words that is also the weight of the output layer, is stored
    once. The nodes named in `kept` stay as they are.
    """
    names = TensorNames(model)
    counts: Counter[str] = Counter()
    for matrix, readers in layers.of(model.graph, kept).items():
        if readers.products:
            weight = _store(matrix, bits, outputs_first=False, names=names)
            _replace_products(readers.products, weight)
        if readers.transposed or readers.lookups:
            weight = _store(matrix, bits, outputs_first=True, names=names)
            _replace_products(readers.transposed, weight)
            _replace_lookups(readers.lookups, weight, names)
        counts["MatMul"] += len(readers.products) + len(readers.transposed)
        counts["Gather"] += len(readers.lookups)
        _drop_unread(matrix)
    if counts:
        model.opset_imports.setdefault(CONTRIBUTED, 1)
    return {name: count for name, count in sorted(counts.items()) if count}


@dataclass(frozen=True)
class _Stored:
    """A weight in blocks: its codes, scales and zero points, its numbers of inputs and outputs, and its bits."""

    values: tuple[ir.Value, ir.Value, ir.Value]
    inputs: int
    outputs: int
    bits: int


def _store(matrix: ir.Value, bits: int, *, outputs_first: bool, names: TensorNames) -> _Stored:
    """Add the tensors of a weight in blocks to the graph."""
    values, graph = surgery.numbers(matrix), surgery.graph_of(matrix)
    packed = blocks.pack(values, bits, outputs_first=outputs_first)
    outputs, inputs = values.shape if outputs_first else values.shape[::-1]
    parts = {f"int{bits}": packed.codes, "scales": packed.scales, "zero_points": packed.zero_points}
    codes, scales, zero_points = (
        surgery.store(graph, names.free(f"{matrix.name}_{ending}"), part) for ending, part in parts.items()
    )
    return _Stored((codes, scales, zero_points), inputs, outputs, bits)


def _replace_products(nodes: list[ir.Node], weight: _Stored) -> None:
    """Put MatMulNBits in the place of MatMul nodes."""
    sizes = {"K": weight.inputs, "N": weight.outputs, "bits": weight.bits, "block_size": blocks.BLOCK}
    for node in nodes:
        inputs = [node.inputs[0], *weight.values]
        numbers = {**sizes, "accuracy_level": matmul_nbits.BY_INTEGERS}
        surgery.replace(node, [_contributed(matmul_nbits.OPERATOR, inputs, node, numbers)])


def _replace_lookups(nodes: list[ir.Node], table: _Stored, names: TensorNames) -> None:
    """Put GatherBlockQuantized in the place of Gather nodes: MatMulNBits reads the same codes with an axis more."""
    import numpy as np

    if not nodes:
        return
    codes, scales, zero_points = table.values
    rows = np.array([table.outputs, -1], np.int64)
    shape = surgery.store(surgery.graph_of(codes), names.free(f"{codes.name}_rows"), rows)
    numbers = {"bits": table.bits, "block_size": blocks.BLOCK, "gather_axis": 0, "quantize_axis": 1}
    for node in nodes:
        flat = surgery.node("Reshape", [codes, shape], names.free(f"{codes.name}_flat"), f"{node.name}_flat")
        inputs = [flat.outputs[0], node.inputs[1], scales, zero_points]
        surgery.replace(node, [flat, _contributed(LOOKUP, inputs, node, numbers)])


def _contributed(operator: str, inputs: list[ir.Value | None], old: ir.Node, numbers: Mapping[str, int]) -> ir.Node:
    """Return a node of ONNX Runtime's own domain, with the name of a node and of its output."""
    import onnx_ir as ir

    outputs = [ir.Value(name=old.outputs[0].name)]
    return ir.node(operator, inputs, dict(sorted(numbers.items())), domain=CONTRIBUTED, outputs=outputs, name=old.name)


def _drop_unread(matrix: ir.Value) -> None:
    """Remove the Transposes of a matrix that no node reads any more, and the matrix, if no other node reads it."""
    for use in matrix.uses():
        if use.node.op_type == "Transpose" and surgery.is_unread(use.node.outputs[0]):
            surgery.graph_of(use.node).remove(use.node, safe=True)
    surgery.drop_unread([matrix])
