"""Linear layers for ONNX Runtime's quantizer: Gemm becomes MatMul and Add, and each weight is transposed once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.kit.onnx import surgery
from engine.kit.onnx.surgery import TensorNames

if TYPE_CHECKING:
    import onnx_ir as ir


def split(model: ir.Model) -> None:
    """Turn every plain Gemm into MatMul and Add; a weight that a Gemm reads transposed is stored transposed.

    ONNX Runtime's quantizer also splits a Gemm, but transposes the weight in place, once for every Gemm that reads the
    weight; other readers of the weight then get the wrong values. The function stores one transposed copy of a weight
    for all Gemms that read the weight transposed. A weight that no node reads any more is removed. A Gemm that
    transposes a computed tensor stays a Gemm, and so does one that scales a factor.
    """
    names = TensorNames(model)
    transposed: dict[ir.Value, ir.Value] = {}
    for node in reversed(list(model.graph.all_nodes())):
        if node.op_type != "Gemm" or node.attributes.get_int("transA"):
            continue
        if any(node.attributes.get_float(name, 1.0) != 1 for name in ("alpha", "beta")):
            continue
        weight = node.inputs[1]
        if weight is not None and node.attributes.get_int("transB"):
            if not weight.is_initializer():
                continue
            if weight not in transposed:
                transposed[weight] = _transposed(weight, names)
            weight = transposed[weight]
        _replace(node, weight, names)
    surgery.drop_unread(transposed)


def _replace(node: ir.Node, weight: ir.Value | None, names: TensorNames) -> None:
    """Put a MatMul and, where there is a bias, an Add in the place of a plain Gemm."""
    output, name = node.outputs[0].name or "", node.name or ""
    bias = node.inputs[2] if len(node.inputs) > 2 else None  # noqa: PLR2004 - input, weight, bias
    factors = [node.inputs[0], weight]
    if bias is None:
        surgery.replace(node, [surgery.node("MatMul", factors, output, name)])
        return
    product = surgery.node("MatMul", factors, names.free(f"{output}_MatMul"), name)
    addition = surgery.node("Add", [product.outputs[0], bias], output, name and f"{name}_Add")
    surgery.replace(node, [product, addition])


def _transposed(weight: ir.Value, names: TensorNames) -> ir.Value:
    """Store a transposed copy of a weight in the graph that stores the weight."""
    return surgery.store(surgery.graph_of(weight), names.free(f"{weight.name}_transposed"), surgery.numbers(weight).T)
