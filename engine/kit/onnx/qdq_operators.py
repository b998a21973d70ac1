"""Q/DQ operators: the types to which those of a model quantize, and ONNX's operators in place of NVIDIA's own."""

# ONNX has QuantizeLinear to fp8 since opset 19, and to int4, in blocks, since opset 21. Before that, and on request
# today, NVIDIA Model Optimizer writes operators of its own (modelopt.onnx.quantization.qdq_utils, `use_trt_qdq_ops`),
# in the domain `trt` or in none. TensorRT's parser reads them as its QuantizeLinear and DequantizeLinear with another
# default type (onnx-tensorrt 96e7811, onnxOpImporters.cpp, QuantDequantLinearHelper); ONNX Runtime does not know them.

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import TYPE_CHECKING

from engine.errors import StepError
from engine.kit.onnx import onnx_files, opsets
from engine.kit.onnx.opsets import OpsetError

if TYPE_CHECKING:
    import onnx

NVIDIA_DOMAIN = "trt"
"""The domain of NVIDIA's own operators."""
NVIDIA: Mapping[str, str] = {
    "TRT_FP8QuantizeLinear": "FLOAT8E4M3FN",
    "TRT_FP8DequantizeLinear": "FLOAT8E4M3FN",
    "TRT_INT4QuantizeLinear": "INT4",
    "TRT_INT4DequantizeLinear": "INT4",
}
"""Each operator with an equal among ONNX's, and ONNX's name for its type."""
_OPSETS = {"FLOAT8E4M3FN": 19, "INT4": 21}
"""The first opset with QuantizeLinear to the type (ONNX's changelog of operators)."""
_DEFAULT = "UINT8"
"""The type of a QuantizeLinear that states none (ONNX, QuantizeLinear, `output_dtype`)."""
_NAMES = {
    "INT8": "int8", "UINT8": "uint8", "INT4": "int4", "UINT4": "uint4", "INT16": "int16", "UINT16": "uint16",
    "FLOAT8E4M3FN": "fp8", "FLOAT4E2M1": "fp4",
}  # fmt: skip


def has_nvidias(model: onnx.ModelProto) -> bool:
    """Whether a model has NVIDIA's own Q/DQ operators."""
    return any(node.op_type in NVIDIA for node in onnx_files.nodes(model))


def standardized(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with ONNX's own operators in place of NVIDIA's; `model` may be changed.

    A model in an older opset is converted to the first opset that has the types. A scale whose shape is not stated, and
    blocks of more than one axis, raise StepError, and so does a model that cannot be converted.
    """
    nodes = [node for node in onnx_files.nodes(model) if node.op_type in NVIDIA]
    for node in nodes:
        node.domain = NVIDIA_DOMAIN  # so that the converter copies it
    if not any(entry.domain == NVIDIA_DOMAIN for entry in model.opset_import):
        model.opset_import.add(domain=NVIDIA_DOMAIN, version=1)
    try:
        converted = opsets.raised(model, max(_OPSETS[NVIDIA[node.op_type]] for node in nodes))
    except OpsetError as error:
        hint = "quantize it again with --opset 21, and without TensorRT's own operators"
        raise StepError("NVIDIA's own Q/DQ operators cannot be read as ONNX's", [str(error)], hint) from error
    shapes = _shapes(converted)
    for graph in onnx_files.graphs(converted.graph):
        for node in [node for node in graph.node if node.op_type in NVIDIA]:
            _standardize(node, graph, shapes)
    left = any(node.domain == NVIDIA_DOMAIN for node in onnx_files.nodes(converted))
    kept = [entry for entry in converted.opset_import if left or entry.domain != NVIDIA_DOMAIN]
    del converted.opset_import[:]
    converted.opset_import.extend(kept)
    return converted


def _standardize(node: onnx.NodeProto, graph: onnx.GraphProto, shapes: Mapping[str, list[int]]) -> None:
    from onnx import TensorProto, helper

    kind = NVIDIA[node.op_type]
    node.op_type = node.op_type.removeprefix("TRT_").removeprefix("FP8").removeprefix("INT4")
    node.domain = ""
    scale = shapes.get(node.input[1])
    if len(node.input) == 2 and node.op_type == "QuantizeLinear":  # noqa: PLR2004  without a zero point
        if scale is None:
            raise StepError(
                f"the shape of a scale is not stated: {node.input[1]}",
                [f"it belongs to {node.name or node.output[0]}, one of NVIDIA's own Q/DQ operators"],
                "quantize the model again without TensorRT's own operators",
            )
        zeros = bytes(-(-prod(scale) * (8 if kind.startswith("FLOAT8") else 4) // 8))
        name = f"{node.output[0]}_zero_point"
        graph.initializer.append(helper.make_tensor(name, TensorProto.DataType.Value(kind), scale, zeros, raw=True))
        node.input.append(name)
    if not {"axis", "block_size"} & {attribute.name for attribute in node.attribute}:
        node.attribute.extend(
            helper.make_attribute(name, value) for name, value in _blocks(node, shapes.get(node.input[0]), scale)
        )


def _blocks(node: onnx.NodeProto, data: list[int] | None, scale: list[int] | None) -> list[tuple[str, int]]:
    """Return the attributes `axis` and `block_size` that a node leaves to the shapes; none for one scale.

    TensorRT's parser reads them from the shapes, too.
    """
    if data is None or scale is None or prod(scale) == 1 or len(scale) != len(data):
        return []
    axes = [axis for axis, (many, few) in enumerate(zip(data, scale, strict=True)) if many != few]
    if len(axes) != 1 or data[axes[0]] % scale[axes[0]]:
        raise StepError(
            f"the scales of {node.name or node.output[0]} do not fit its weights",
            [f"weights {data}, scales {scale}"],
            "quantize the model again without TensorRT's own operators",
        )
    return [("axis", axes[0]), ("block_size", data[axes[0]] // scale[axes[0]])]


def _shapes(model: onnx.ModelProto) -> dict[str, list[int]]:
    """Return the shapes of stored tensors by name, and those of what NVIDIA's operators make of them."""
    shapes = {name: list(tensor.dims) for name, tensor in _stored(model)}
    for node in onnx_files.nodes(model):
        if node.op_type in NVIDIA and node.input[0] in shapes:
            shapes[node.output[0]] = shapes[node.input[0]]
    return shapes


def quantized_types(model: onnx.ModelProto) -> tuple[str, ...]:
    """Return the types to which a model's QuantizeLinear and DequantizeLinear quantize, sorted: ("fp8", "int4").

    A type that recipes have no name for has ONNX's name in small letters. A model without Q/DQ operators has no types.
    NVIDIA's own Q/DQ operators count as ONNX's.
    """
    stored = {name: tensor.data_type for name, tensor in _stored(model)}
    types = {kind for node in onnx_files.nodes(model) for kind in _types(node, stored)}
    return tuple(sorted(_NAMES.get(kind, kind.lower()) for kind in types if kind not in {"", "INT32"}))


def _stored(model: onnx.ModelProto) -> Iterator[tuple[str, onnx.TensorProto]]:
    """Yield the names and the tensors of initializers and of constants in nodes."""
    for graph in onnx_files.graphs(model.graph):
        yield from ((tensor.name, tensor) for tensor in graph.initializer)
    for node in onnx_files.nodes(model):
        if node.op_type == "Constant":
            yield from ((node.output[0], each.t) for each in node.attribute if each.HasField("t"))


def _types(node: onnx.NodeProto, stored: Mapping[str, int]) -> Iterator[str]:
    """Yield ONNX's name for the type that a Q/DQ operator reads or writes, where the operator states it."""
    from onnx import TensorProto

    if node.op_type in NVIDIA:
        yield NVIDIA[node.op_type]
    elif node.op_type == "QuantizeLinear":
        zero_point = stored.get(node.input[2]) if len(node.input) > 2 else None  # noqa: PLR2004  x, scale, zero point
        stated = zero_point or next((each.i for each in node.attribute if each.name == "output_dtype"), 0)
        yield TensorProto.DataType.Name(stated) if stated else _DEFAULT
    elif node.op_type == "DequantizeLinear" and node.input[0] in stored:
        yield TensorProto.DataType.Name(stored[node.input[0]])
