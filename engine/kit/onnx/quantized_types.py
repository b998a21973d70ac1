"""Quantized types: the types to which the Q/DQ operators of an ONNX graph quantize, as recipes call them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from engine.kit.onnx import nvidia_qdq, onnx_files

if TYPE_CHECKING:
    import onnx

_DEFAULT = "UINT8"
"""The type of a QuantizeLinear that states none (ONNX, QuantizeLinear, `output_dtype`)."""
_NAMES = {
    "INT8": "int8", "UINT8": "uint8", "INT4": "int4", "UINT4": "uint4", "INT16": "int16", "UINT16": "uint16",
    "FLOAT8E4M3FN": "fp8", "FLOAT4E2M1": "fp4",
}  # fmt: skip


def of(model: onnx.ModelProto) -> tuple[str, ...]:
    """Return the types to which a model's QuantizeLinear and DequantizeLinear quantize, sorted: ("fp8", "int4").

    A type that recipes have no name for has ONNX's name in small letters. A model without Q/DQ operators has no types.
    NVIDIA's own Q/DQ operators count as ONNX's.
    """
    stored = stored_types(model)
    types = {kind for node in onnx_files.nodes(model) for kind in _types(node, stored)}
    return tuple(sorted(_NAMES.get(kind, kind.lower()) for kind in types if kind not in {"", "INT32"}))


def stored_types(model: onnx.ModelProto) -> Mapping[str, int]:
    """Return the type of each stored tensor by name: initializers, and constants in nodes."""
    types = {tensor.name: tensor.data_type for graph in onnx_files.graphs(model.graph) for tensor in graph.initializer}
    for node in onnx_files.nodes(model):
        if node.op_type == "Constant":
            types.update((node.output[0], each.t.data_type) for each in node.attribute if each.HasField("t"))
    return types


def _types(node: onnx.NodeProto, stored: Mapping[str, int]) -> Iterator[str]:
    """Yield ONNX's name for the type that a Q/DQ operator reads or writes, where the operator states it."""
    from onnx import TensorProto

    if node.op_type in nvidia_qdq.TYPES:
        yield nvidia_qdq.TYPES[node.op_type]
    elif node.op_type == "QuantizeLinear":
        zero_point = stored.get(node.input[2]) if len(node.input) > 2 else None  # noqa: PLR2004  x, scale, zero point
        stated = zero_point or next((each.i for each in node.attribute if each.name == "output_dtype"), 0)
        yield TensorProto.DataType.Name(stated) if stated else _DEFAULT
    elif node.op_type == "DequantizeLinear" and node.input[0] in stored:
        yield TensorProto.DataType.Name(stored[node.input[0]])
